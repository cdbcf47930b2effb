"""Tables in files, larger than memory if need be: read by Polars in streams, written whole."""

from argmaxf.files.commands import (
    decide_files,
    estimate_files,
    evaluate_files,
    label_files,
    summarize_files,
    tune_files,
)
from argmaxf.files.scored import ScoredFiles

__all__ = [
    "ScoredFiles",
    "decide_files",
    "estimate_files",
    "evaluate_files",
    "label_files",
    "summarize_files",
    "tune_files",
]
