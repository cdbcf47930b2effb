"""The rate of positives where a classifier predicts, if that is another than in training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.validation import check_choice
from argmaxf.empirical.interval import Interval
from argmaxf.empirical.label_shift import estimate_rate, most_likely_shares
from argmaxf.estimators.labels import Labels
from argmaxf.prior import ESTIMATE, check_rate, shift_prior

WHOLE = 1e-6  # by which the shares of all classes may miss a total of one


@dataclass(frozen=True)
class Deployed:
    """The rates in training, one for each label or class, and what was said of those to come.

    Labels that training saw always or never keep their probability: no rate moves it.
    """

    labels: Labels
    train: Floats
    chance: Any  # None, a number, one for each label or class, or "estimate"
    fewest: int | None = None  # positives in training, of the rarest label that varies there

    @classmethod
    def of(
        cls, deploy_rate: Any, labels: Labels, columns: Bools, weight: Floats | None
    ) -> Deployed:
        """Check the rate that was asked for, and take those of the training rows."""
        check_deploy_rate(deploy_rate, labels)
        known = cls(labels, np.average(columns, axis=0, weights=weight), deploy_rate)
        seen = columns if weight is None else columns[weight > 0]
        positives = seen.sum(axis=0)[known.usual]
        return replace(known, fewest=int(positives.min()) if positives.size else None)

    @property
    def by_batch(self) -> bool:
        """Whether each batch shows its own rate."""
        return isinstance(self.chance, str)

    @property
    def usual(self) -> Bools:
        """Which labels have both positives and negatives in training."""
        return (self.train > 0.0) & (self.train < 1.0)

    @property
    def usual_rates(self) -> Floats:
        """The rates to reckon with before a batch is seen, of labels that vary in training."""
        rates = self.train if self.chance is None or self.by_batch else self.rates(self.train)
        return np.asarray(rates[self.usual])

    def estimated(
        self,
        proba: Floats,
        method: str = "likelihood",
        confidence_level: float = 0.95,
        reference: Floats | None = None,
    ) -> Any:
        """Return the rates of a batch: intervals, or the most likely shares of many classes.

        None stands for a label that training saw always or never. `reference` are probabilities of
        training rows, got while they were held out.
        """
        if self.labels.kind == "multiclass":
            check_choice("method of a multiclass target", method, ("likelihood",))
            return most_likely_shares(proba, self.train)
        columns = proba.T
        known = [None] * len(columns) if reference is None else reference.T
        found: list[Interval | None] = [
            estimate_rate(
                p,
                train_rate=float(rate),
                reference=seen,
                method=method,
                confidence_level=confidence_level,
            )
            if usual
            else None
            for p, seen, rate, usual in zip(columns, known, self.train, self.usual, strict=True)
        ]
        return found

    def rates(self, proba: Floats) -> Floats:
        """Return the rate of each label where a batch comes from."""
        if not self.by_batch:
            return np.broadcast_to(np.asarray(self.chance, dtype=np.float64), self.train.shape)
        found = self.estimated(proba)
        if self.labels.kind == "multiclass":
            return np.asarray(found)
        return np.array([rate.value if rate else 0.5 for rate in found])

    def moved(self, proba: Floats) -> Floats:
        """Return the probabilities of a batch at its own rate."""
        if self.chance is None:
            return proba
        rates = self.rates(proba)
        if self.labels.kind == "multiclass":
            joint = proba * (rates / self.train)
            return np.asarray(joint / joint.sum(axis=1, keepdims=True))
        train, deploy = (np.where(self.usual, r, 0.5) for r in (self.train, rates))
        return np.asarray(shift_prior(proba, train_rate=train, deploy_rate=deploy))

    def sample_like(self, proba: Floats) -> Floats:
        """Return the training rows' probabilities as they would come at the rate asked for, moved.

        Where only the rate has moved, a row comes as often as its classes do, by their chances.
        Rows are drawn evenly over their ranks, the labels of a row each on their own.
        """
        rates, moved = self.rates(proba), self.moved(proba)
        if self.labels.kind == "multiclass":
            return moved[_drawn(proba @ (rates / self.train))]
        train, deploy = (np.where(self.usual, r, 0.5) for r in (self.train, rates))
        often = proba * (deploy / train) + (1.0 - proba) * ((1.0 - deploy) / (1.0 - train))
        order = np.argsort(proba, axis=0)
        drawn = [rank[_drawn(w[rank])] for w, rank in zip(often.T, order.T, strict=True)]
        return np.take_along_axis(moved, np.stack(drawn, axis=1), axis=0)

    def weights(self, columns: Bools, rates: Floats) -> Floats:
        """Return what training rows count where the rates are these, (n, n_columns).

        Rows of a class keep their share among themselves, and the class gets its new one.
        """
        if self.labels.kind == "multiclass":
            return np.broadcast_to((columns @ (rates / self.train))[:, None], columns.shape)
        train, deploy = (np.where(self.usual, r, 0.5) for r in (self.train, rates))
        return np.where(columns, deploy / train, (1.0 - deploy) / (1.0 - train))


def _drawn(often: Floats) -> Ints:
    """Return as many places as there are, each as often as it shall come, up to one."""
    share = np.cumsum(often) / often.sum()
    middle = (np.arange(often.size) + 0.5) / often.size
    return np.minimum(np.searchsorted(share, middle), often.size - 1)


def check_deploy_rate(deploy_rate: Any, labels: Labels) -> None:
    """Refuse what is no rate for each label, no share for each class, and not "estimate"."""
    if deploy_rate is None:
        return
    if isinstance(deploy_rate, str):
        check_choice("deploy_rate", deploy_rate, (ESTIMATE,))
        return
    rates = np.atleast_1d(check_rate("deploy_rate", deploy_rate))
    if labels.kind == "multiclass":
        _check_shares(rates, labels.n_columns)
    elif rates.shape not in ((1,), (labels.n_columns,)):
        raise ValueError(
            f"deploy_rate must be a number or one for each of {labels.n_columns} labels, got "
            f"{rates.size}"
        )


def _check_shares(rates: Floats, classes: int) -> None:
    if rates.shape != (classes,):
        raise ValueError(
            f"deploy_rate must have the share of each of {classes} classes, got {rates.size}"
        )
    if abs(rates.sum() - 1.0) > WHOLE:
        raise ValueError(
            f"deploy_rate must have shares of the classes that sum to 1, got {rates.sum():g}"
        )
