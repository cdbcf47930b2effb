"""The fits that a comparison takes, and what is read from each of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import cross_validate

from argmaxf._base.arrays import Floats, Ints
from argmaxf.comparison.methods import Method
from argmaxf.estimators.doubts import CalibrationWarning
from argmaxf.estimators.labels import constants_said
from argmaxf.estimators.rowwise import SmallBatchWarning
from argmaxf.estimators.scores import LabelScorer

LINEAR = ("decision_function",)  # what is read of a linear model


@dataclass(frozen=True)
class Fit:
    """One model to be fitted, and what is read from it for rows that it has not seen.

    `split` are the rows to train on and those to be read; without it the model trains on all rows,
    and is read for `X_test` where there is one.
    """

    method: Method | None  # None is the classifier itself
    name: str
    model: Any
    X: Any
    target: NDArray[Any]
    params: dict[str, Any]
    read: Callable[[Any, Any], Any]
    split: tuple[Ints, Ints] | None = None
    X_test: Any = None

    def run(self) -> Any:
        """Return the fitted model, with what was read from it as `read_`."""
        with constants_said():
            return self._on_all_rows() if self.split is None else self._on_fold()

    def _on_all_rows(self) -> Any:
        model = clone(self.model).fit(self.X, self.target, **self.params)
        model.read_ = None if self.X_test is None else self.read(model, self.X_test)
        return model

    def _on_fold(self) -> Any:
        return cross_validate(
            self.model,
            self.X,
            self.target,
            cv=[self.split],
            scoring=partial(_keep, self.read),
            return_estimator=True,
            error_score="raise",
            params=self.params,
        )["estimator"][0]


@contextmanager
def without_advice() -> Iterator[None]:
    """Keep quiet about what methods tell their users; the notes of the comparison say it once."""
    with constants_said(), warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        warnings.simplefilter("ignore", SmallBatchWarning)
        yield


def _keep(read: Callable[[Any, Any], Any], model: Any, X: Any, y: Any) -> float:
    """Stand in for a scorer in `cross_validate`: leave what is read on the fold's model."""
    model.read_ = read(model, X)
    return 0.0


def read_scores(kinds: Sequence[str], scorer: LabelScorer, X: Any) -> Floats:
    """Return the classifier's scores of each kind, side by side."""
    return np.hstack([scorer.scores(X, kind) for kind in kinds])


def read_predictions(stream: bool, model: Any, X: Any) -> tuple[Any, Any]:
    """Return predictions, and decision scores where there are any."""
    if stream and hasattr(model, "freeze"):
        model = model.freeze()
    scores = model.decision_function(X) if hasattr(model, "decision_function") else None
    return model.predict(X), scores
