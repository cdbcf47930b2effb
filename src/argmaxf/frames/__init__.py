"""Data frames of any engine Narwhals knows: the exact decision where the rows are."""

from argmaxf.frames.decide import TiesWarning, decide, decisions, summarize
from argmaxf.frames.labelled import evaluate, tune

__all__ = ["TiesWarning", "decide", "decisions", "evaluate", "summarize", "tune"]
