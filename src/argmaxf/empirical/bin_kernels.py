"""Labelled rows counted in the bins of their scores, see `bins.py`."""

from __future__ import annotations

import numpy as np

from argmaxf._base.compiled import kernel


@kernel
def count_labelled(y, score, bits, weight, first, shift, table):
    """Add rows to the bins of a table; return how many cannot be used. Weights may be none.

    The bits of doubles, those of negative numbers but the sign turned round, are ordered as they.
    """
    bad = 0
    for i in range(score.size):
        s = score[i] + 0.0  # one zero only
        w = weight[i] if weight.size else 1.0
        if s != s or y[i] > 1 or not (0.0 <= w < np.inf):
            bad += 1
        elif w > 0.0:
            number = bits[i] ^ ((bits[i] >> 63) & 0x7FFFFFFFFFFFFFFF) if s != 0.0 else 0
            row = table[(number >> shift) - first]
            row[3] = s if row[0] == 0.0 else min(row[3], s)
            row[4] = s if row[0] == 0.0 else max(row[4], s)
            row[0] += 1.0
            row[1 if y[i] else 2] += w
    return bad
