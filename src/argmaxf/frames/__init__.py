"""Data frames of any engine Narwhals knows: the exact decision where the rows are."""

from argmaxf.frames.labelled import evaluate, tune
from argmaxf.frames.solve import TiesWarning, decide, decisions, summarize

__all__ = ["TiesWarning", "decide", "decisions", "evaluate", "summarize", "tune"]
