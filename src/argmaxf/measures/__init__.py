"""The measures: one file for each, one row in the registry; `measure=` takes a name or an object.

A measure is a value from counts (`Measure`). The members of `Ratio` are known to both wings: the
empirical one needs their value, the decision-theoretic one their coefficients.
"""

from __future__ import annotations

from argmaxf.measures.base import Measure
from argmaxf.measures.fbeta import FBeta
from argmaxf.measures.jaccard import Jaccard
from argmaxf.measures.ratio import Coefficients, Ratio

__all__ = ["MEASURES", "Coefficients", "FBeta", "Jaccard", "Measure", "Ratio", "as_measure"]

MEASURES: dict[str, type[Measure]] = {each.name: each for each in (FBeta, Jaccard)}


def as_measure(measure: str | Measure, beta: float = 1.0) -> Measure:
    """Return the measure that a public function was asked for.

    Parameters
    ----------
    measure : str or Measure
        A name of the registry, or an object such as ``FBeta(2)``.
    beta : float, default=1.0
        The β of F_β; other measures have none, and an object has its own.

    Returns
    -------
    Measure

    Examples
    --------
    >>> as_measure("fbeta", 0.5)
    FBeta(beta=0.5, smooth=0.0)
    """
    if isinstance(measure, Measure):
        if beta not in (1.0, getattr(measure, "beta", 1.0)):
            raise ValueError(f"measure={measure!r} stands for itself, got beta={beta!r} beside it")
        return measure
    if not isinstance(measure, str) or measure not in MEASURES:
        names = ", ".join(map(repr, MEASURES))
        raise ValueError(f"measure must be one of {names}, or a Measure; got {measure!r}")
    return MEASURES[measure].with_beta(beta)
