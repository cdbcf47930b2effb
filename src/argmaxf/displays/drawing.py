"""What all displays share: axes, colours, names of measures, and how classifiers are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxf.estimators.labels import Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# One colour for each quantity in every display; readable on white and on black, and apart for the
# common colour blindnesses.
BLUE, ORANGE, GREEN, GREY = "#2f7fc1", "#c8641b", "#1d8f6a", "#808890"
VIOLET = "#8a63b8"
MOST_POINTS = 1200  # more cannot be told apart on a page; files stay small


def new_axes(ax: Axes | None, *, width: float) -> Axes:
    """Return the axes to draw on: those given, or a new figure's."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "displays need matplotlib; run pip install 'argmaxf[plot]'", name="matplotlib"
        ) from None
    return plt.subplots(figsize=(width, 4.2), layout="constrained")[1]


def tidy(ax: Axes, *, xlabel: str, ylabel: str, title: str) -> None:
    """Label the axes and leave out what carries no information."""
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.set_title(title, loc="left", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)


def thinned(n: int, *keep: int) -> NDArray[np.int64]:
    """Return at most about `MOST_POINTS` of the indices 0 … n-1, with ends, start and `keep`.

    Half of them evenly, half dense at the beginning, where curves over rare positives turn.

    >>> thinned(4, 2)
    array([0, 1, 2, 3])
    """
    if n <= MOST_POINTS:
        return np.arange(n)
    even = np.linspace(0, n - 1, MOST_POINTS // 2)
    early = np.geomspace(1, n, MOST_POINTS // 2) - 1
    return np.unique(np.concatenate([even, early, keep]).astype(np.int64))


def positive_proba(estimator: Any, X: Any, pos_label: Any = None) -> NDArray[np.float64]:
    """Return each row's probability of the positive class, from a fitted binary classifier."""
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(f"{type(estimator).__name__} has no predict_proba")
    return _column(estimator, np.asarray(estimator.predict_proba(X)), pos_label)


def positive_score(estimator: Any, X: Any, pos_label: Any = None) -> NDArray[np.float64]:
    """Return the probability of the positive class, or the decision score where there is none."""
    if hasattr(estimator, "predict_proba"):
        return positive_proba(estimator, X, pos_label)
    score = np.asarray(estimator.decision_function(X))
    both = score if score.ndim == 2 else np.column_stack([-score, score])
    return _column(estimator, both, pos_label)


def positives(y_true: ArrayLike, pos_label: Any = None) -> NDArray[np.bool_]:
    """Return which rows are of the positive class of a binary target."""
    labels = Labels.of(y_true, pos_label)
    if labels.kind != "binary":
        raise ValueError(f"y_true must have two classes, got a {labels.kind} target")
    return labels.columns(y_true)[:, 0]


def _column(estimator: Any, response: NDArray[np.float64], pos_label: Any) -> NDArray[np.float64]:
    classes = list(estimator.classes_)
    if len(classes) != 2 or response.ndim != 2 or response.shape[1] != 2:
        raise ValueError(f"the classifier must have two classes, got {len(classes)}")
    if pos_label is not None and pos_label not in classes:
        raise ValueError(f"pos_label must be one of {classes}, got {pos_label!r}")
    return response[:, -1 if pos_label is None else classes.index(pos_label)]
