"""Tables in files, larger than memory if need be: read by Polars in streams, written whole."""

from argmaxf._base.atomic_write import written_whole
from argmaxf.files.deciding import (
    Options,
    decide_files,
    estimate_files,
    label_files,
    summarize_files,
)

__all__ = [
    "Options",
    "decide_files",
    "estimate_files",
    "label_files",
    "summarize_files",
    "written_whole",
]
