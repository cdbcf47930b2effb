"""Data frames of any engine Narwhals knows: the exact decision where the rows are."""

from argmaxf.frames.decide import TiesWarning, decide, decisions, summarize

__all__ = ["TiesWarning", "decide", "decisions", "summarize"]
