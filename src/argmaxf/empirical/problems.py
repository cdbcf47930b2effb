"""Labelled scores as the separate searches they ask for: one for each label or segment."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from argmaxf._base.segments import Segments
from argmaxf._base.validation import (
    as_positives,
    as_scores,
    as_weights,
    check_choice,
    second_column,
)
from argmaxf.empirical.cuts import counted

AVERAGES = ("macro", "micro", "samples")


class Problems(NamedTuple):
    """Searches for a threshold, each (labels, scores, weights), and what they are called."""

    kind: str | None  # "label", "segment", or None where there is one search
    names: NDArray[Any]
    items: list[tuple[Any, Any, Any]]
    average: str | None

    @property
    def weight(self) -> Any:
        """The weights of all rows, or None."""
        weights = [weight for _, _, weight in self.items]
        return None if weights[0] is None else np.concatenate(weights)

    def share(self, confidence_level: float) -> tuple[float, float | None]:
        """Return the confidence of each, and that of all at once where it is another.

        Segments share the risk, labels have their own.
        """
        if self.kind != "segment" or len(self.items) == 1:
            return confidence_level, None
        return 1 - (1 - confidence_level) / len(self.items), confidence_level

    @property
    def named(self) -> str | None:
        """What errors name: a label where there are several, or a segment."""
        return None if self.kind == "label" and len(self.items) == 1 else self.kind

    def naming(self, name: Any, error: Exception) -> str:
        """Return an error's message with the label or segment it is about."""
        return f"{self.named} {_plain(name)!r}: {error}" if self.named else str(error)


def read_problems(
    y_true: Any,
    score: Any,
    sample_weight: Any,
    average: str | None,
    by: Any = None,
    pos_label: Any = None,
) -> Problems:
    """Check the items and return the separate searches they ask for."""
    y, s = as_positives("y_true", y_true, pos_label), as_scores("score", score)
    if y.shape != s.shape:
        hint = second_column("score", s) if y.ndim == 1 else ""
        raise ValueError(f"y_true and score must have one shape, got {y.shape} and {s.shape}{hint}")
    if y.size == 0 or y.ndim not in (1, 2):
        raise ValueError(f"y_true must be a non-empty vector or table, got shape {y.shape}")
    weight = as_weights(sample_weight, len(y))
    if by is not None:
        return _by_segment(y, s, weight, average, Segments.of(by, len(y)))
    y, s, weight = counted(y, s, weight)
    if y.ndim == 2 and check_choice("average", average, AVERAGES) == "macro":
        items = [(y[:, j], s[:, j], weight) for j in range(y.shape[1])]
        return Problems("label", np.arange(len(items)), items, average)
    if y.ndim == 1:
        check_choice("average", average, (None,))
    if average == "micro":
        weight = None if weight is None else weight.repeat(y.shape[1])
        y, s = y.ravel(), s.ravel()
    return Problems(None, np.arange(1), [(y, s, weight)], average)


def _by_segment(y: Any, s: Any, weight: Any, average: str | None, segments: Segments) -> Problems:
    """Part the rows; a segment without weight is not there."""
    if y.ndim != 1 or average is not None:
        raise ValueError(f"by is for one column of labels, got shape {y.shape} and {average=}")
    parts = [
        (name, counted(y[rows], s[rows], None if weight is None else weight[rows]))
        for name, rows in zip(segments.names, segments.rows(), strict=True)
    ]
    parts = [(name, items) for name, items in parts if len(items[0])]
    return Problems("segment", np.array([p[0] for p in parts]), [p[1] for p in parts], None)


def _plain(name: Any) -> Any:
    return name.item() if isinstance(name, np.generic) else name
