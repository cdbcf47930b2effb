"""Data frames of any engine Narwhals knows: the exact decision where the rows are."""

from argmaxf.frames.deciding import decide, decisions, summarize

__all__ = ["decide", "decisions", "summarize"]
