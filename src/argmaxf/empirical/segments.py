"""The best threshold of each segment of labelled rows."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from argmaxf.empirical.promises import PromiseError, check_confidence, raise_together
from argmaxf.empirical.threshold import Threshold, maximize_empirical_f
from argmaxf.validation import as_weights


def maximize_empirical_f_by(
    y_true: ArrayLike, score: ArrayLike, by: ArrayLike, **options: Any
) -> dict[Hashable, Threshold]:
    """Return the best threshold of each segment of the rows.

    With `confidence` the constraints hold in every segment at once, and so for all rows together:
    the risk is shared evenly among the segments.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True 0/1 labels.
    score : array-like of shape (n,)
        Scores, larger meaning more positive.
    by : array-like of shape (n,)
        The segment of each row.
    **options : object
        As in `maximize_empirical_f`, but for `average`.

    Returns
    -------
    dict
        The `Threshold` of each segment.

    Examples
    --------
    >>> found = maximize_empirical_f_by([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9], ["a", "a", "b", "b"])
    >>> {segment: best.threshold for segment, best in found.items()}
    {'a': 0.25, 'b': 0.75}
    """
    y, s, segment = np.asarray(y_true), np.asarray(score), np.asarray(by)
    if not y.shape == s.shape == segment.shape == (y.size,):
        shapes = f"{y.shape}, {s.shape} and {segment.shape}"
        raise ValueError(f"y_true, score and by must be vectors of one length, got {shapes}")
    weight = as_weights(options.pop("sample_weight", None), y.size)
    names, of = np.unique(segment, return_inverse=True)
    if options.get("confidence") is not None:
        options["confidence"] = 1 - (1 - check_confidence(options["confidence"])) / names.size
    failed: list[tuple[Any, PromiseError]] = []
    found = {}
    for i, name in enumerate(names.tolist()):
        rows = of == i
        own = None if weight is None else weight[rows]
        try:
            found[name] = maximize_empirical_f(y[rows], s[rows], sample_weight=own, **options)
        except PromiseError as error:
            failed.append((name, error))
    raise_together("segment", failed)
    return found
