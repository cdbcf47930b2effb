"""Tables in files, larger than memory if need be: read by Polars in streams, written whole."""

from argmaxf.files.decide_files import (
    ScoredFiles,
    decide_files,
    estimate_files,
    label_files,
    summarize_files,
)

__all__ = ["ScoredFiles", "decide_files", "estimate_files", "label_files", "summarize_files"]
