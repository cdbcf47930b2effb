"""Real data that need no download: scans of handwritten digits, from scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import load_digits

if TYPE_CHECKING:
    import polars as pl

DIGIT = 1
POSITIVES = 60
SIDE = 4  # pixels on a side, of the 8 there are
NINE = 9  # the class that `python -m benchmarks.demo` finds, on training rows alone


def nines(seed: int = 0) -> pl.DataFrame:
    """Return scans of handwritten digits in the order of `seed`: 64 pixels, and `is_9`.

    1,797 digits of 43 writers (Alpaydin and Kaynak 1998), as scikit-learn bundles them.

    >>> frame = nines()
    >>> frame.shape, frame["is_9"].sum()
    ((1797, 65), 180)
    """
    import polars as pl

    pixels, digit = load_digits(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(len(digit))
    frame = pl.DataFrame(pixels[rows], schema=[f"pixel_{i // 8}_{i % 8}" for i in range(64)])
    return frame.with_columns(is_9=pl.Series((digit[rows] == NINE).astype(np.int64)))


def rare_digits(seed: int = 0) -> pl.DataFrame:
    """Return them at half their resolution with few 1s: 60, drawn by `seed`; 3.6 % of the rows.

    >>> frame = rare_digits()
    >>> frame.shape, frame["is_1"].sum()
    ((1675, 17), 60)
    """
    rng = np.random.default_rng(seed)
    digit = load_digits(return_X_y=True)[1]
    rare = rng.permutation(np.flatnonzero(digit == DIGIT))[:POSITIVES]
    return _frame(rng.permutation(np.concatenate([np.flatnonzero(digit != DIGIT), rare])))


def _frame(rows: Any) -> pl.DataFrame:
    """Return some of the digits as a table."""
    import polars as pl

    pixels, digit = load_digits(return_X_y=True)
    small = pixels.reshape(-1, SIDE, 2, SIDE, 2).sum(axis=(2, 4)).reshape(-1, SIDE * SIDE)
    names = [f"pixel_{i // SIDE}_{i % SIDE}" for i in range(SIDE * SIDE)]
    frame = pl.DataFrame(small[rows], schema=names)
    return frame.with_columns(is_1=pl.Series((digit[rows] == DIGIT).astype(np.int64)))
