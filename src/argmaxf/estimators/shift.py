"""Distribution shift: the target prior, and detection of batches unlike the training rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
from scipy.stats import ks_2samp

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf._base.validation import check_choice, how_many
from argmaxf.estimators.calibration import CalibrationWarning
from argmaxf.estimators.labels import Labels, counted
from argmaxf.estimators.scores import HeldOut, LabelScorer, TrainingData
from argmaxf.measures import Interval
from argmaxf.prior import ESTIMATE, check_rate, estimate_rate, most_likely_shares

FEW_POSITIVES = 10  # in training, below which a forecast of F is unreliable
READINGS = (
    "Scores alone cannot tell two causes apart. (1) Covariate shift: the features have another "
    "distribution, but similar rows are positive as often as in training. The probabilities "
    "remain right, but thresholds tuned in training do not; ExpectedFClassifier decides by the "
    "batch itself. (2) Prior shift: the share of positives has changed, but the rows of each "
    "class look as before. The probabilities are wrong; "
    "ExpectedFClassifier(deploy_rate=...) corrects them to the new share, or to its estimate with "
    "deploy_rate='estimate'. Each remedy does harm under the other cause "
    "(docs/distribution-shift.md)."
)


@dataclass(frozen=True)
class TargetPrior:
    """The rates of positives in training, one for each label or class, and those to expect.

    Labels with one value only in training keep their probability: no rate moves it.
    """

    labels: Labels
    train: Floats
    deploy: Any  # None, a number, one for each label or class, or "estimate"
    fewest: int | None = None  # positives in training, of the rarest label that varies there

    @classmethod
    def of(cls, deploy_rate: Any, rows: TrainingData | HeldOut) -> TargetPrior:
        """Check `deploy_rate`, and take the rates of the training rows."""
        check_deploy_rate(deploy_rate, rows.labels)
        prior = cls(rows.labels, np.average(rows.columns, axis=0, weights=rows.weight), deploy_rate)
        _, positives = counted(rows.columns, rows.weight)
        return replace(prior, fewest=min(compress(positives, prior.varies), default=None))

    def warn_if_few(self) -> None:
        """Warn the caller's caller that the predicted F rests on few positives."""
        if self.fewest is None or self.fewest >= FEW_POSITIVES:
            return
        of = " of the rarest label" if len(self.train) > 1 else ""
        warnings.warn(
            f"the predicted F is based on {how_many(self.fewest, 'positive')}{of} in training: "
            "other training rows would give a different value",
            CalibrationWarning,
            stacklevel=3,
        )

    @property
    def by_batch(self) -> bool:
        """Whether the rate of each batch is estimated."""
        return isinstance(self.deploy, str)

    @property
    def varies(self) -> Bools:
        """Which labels have both positives and negatives in training."""
        return (self.train > 0.0) & (self.train < 1.0)

    def estimated(
        self,
        proba: Floats,
        method: str = "likelihood",
        confidence_level: float = 0.95,
        reference: Floats | None = None,
    ) -> Any:
        """Return the rates of a batch: intervals, or the most likely shares of many classes.

        The rate of a label with one value only in training is None. `reference` are probabilities
        of training rows while held out.
        """
        if self.labels.kind == "multiclass":
            check_choice("method of a multiclass target", method, ("likelihood",))
            return most_likely_shares(proba, self.train)
        how: dict[str, Any] = {"method": method, "confidence_level": confidence_level}
        known = [None] * proba.shape[1] if reference is None else reference.T
        found: list[Interval | None] = [
            estimate_rate(p, train_rate=float(rate), reference=seen, **how) if varies else None
            for p, seen, rate, varies in zip(proba.T, known, self.train, self.varies, strict=True)
        ]
        return found

    def rates(self, proba: Floats | None = None) -> Floats:
        """Return the rate of each label where a batch comes from; one estimated needs the batch."""
        if proba is None or not self.by_batch:
            return np.broadcast_to(np.asarray(self.deploy, dtype=np.float64), self.train.shape)
        found = self.estimated(proba)
        if self.labels.kind == "multiclass":
            return np.asarray(found)
        return np.array([rate.value if rate else 0.5 for rate in found])

    def moved(self, proba: Floats) -> Floats:
        """Return the probabilities of a batch at its own rate."""
        if self.deploy is None:
            return proba
        rates = self.rates(proba)
        return np.asarray(proba * self._factors(rates)[0] / self.weights(proba, rates))

    def odds(self) -> Floats:
        """Return by what the target rate multiplies the odds, or shares, of each label."""
        positive, negative = self._factors(self.rates())
        return np.asarray(positive / negative)

    def sample_like(self, proba: Floats) -> Floats:
        """Return the training rows' probabilities as they would come at the target rate, moved.

        Under prior shift a row comes as often as its classes do, by their probabilities. Rows are
        drawn evenly over their ranks, each label of a row by itself.
        """
        rates, moved = self.rates(proba), self.moved(proba)
        often = self.weights(proba, rates)
        if self.labels.kind == "multiclass":
            return moved[_drawn(often[:, 0])]
        order = np.argsort(proba, axis=0)
        drawn = [rank[_drawn(w[rank])] for w, rank in zip(often.T, order.T, strict=True)]
        return np.take_along_axis(moved, np.stack(drawn, axis=1), axis=0)

    def weights(self, proba: Any, rates: Floats) -> Floats:
        """Return how often rows come at these rates for once in training, (n, n_columns).

        Rows of a class keep their share among themselves, and the class gets its new one; rows
        are of classes by their labels, or by their probabilities.
        """
        positive, negative = self._factors(rates)
        if self.labels.kind == "multiclass":
            return np.broadcast_to((proba @ positive)[:, None], proba.shape)
        return np.asarray(proba * positive + (1.0 - proba) * negative)

    def _factors(self, rates: Floats) -> tuple[Any, Any]:
        """Return what these rates make of one positive and of one negative row in training."""
        if self.labels.kind == "multiclass":
            return rates / self.train, 1.0
        train, deploy = np.where(self.varies, [self.train, rates], 0.5)
        return deploy / train, (1.0 - deploy) / (1.0 - train)


def _drawn(often: Floats) -> Ints:
    """Return as many places as there are, each in proportion to `often`."""
    share = np.cumsum(often) / often.sum()
    middle = (np.arange(often.size) + 0.5) / often.size
    return np.minimum(np.searchsorted(share, middle), often.size - 1)


def check_deploy_rate(deploy_rate: Any, labels: Labels) -> None:
    """Check for a rate for each label, a share for each class, or "estimate"."""
    if deploy_rate is None:
        return
    if isinstance(deploy_rate, str):
        check_choice("deploy_rate", deploy_rate, (ESTIMATE,))
        return
    rates = np.atleast_1d(check_rate("deploy_rate", deploy_rate))
    n, shares = len(labels.names), labels.kind == "multiclass"
    if rates.shape != (n,) and (shares or rates.shape != (1,)):
        must = (
            f"have a share for each of {n} classes"
            if shares
            else (f"be a number or one for each of {n} labels")
        )
        raise ValueError(f"deploy_rate must {must}, got {rates.size}")
    if shares and abs(rates.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"deploy_rate must have shares of the classes that sum to 1, got {rates.sum():g}"
        )


def clear_difference(
    one: Floats, other: Floats, comparisons: int = 1
) -> tuple[float, float] | None:
    """Return the Kolmogorov-Smirnov distance of two tables of scores, and its p-value.

    They are of the label with the largest distance, Bonferroni-corrected over labels and
    `comparisons` of such tables. None where the distance is not significant, or small: large
    batches find any difference.
    """
    if min(len(one), len(other)) < 2:
        return None
    tests = [ks_2samp(*pair, method="asymp") for pair in zip(one.T, other.T, strict=True)]
    p_value = min(1.0, comparisons * len(tests) * min(test.pvalue for test in tests))
    largest = max(test.statistic for test in tests)
    return (largest, p_value) if p_value < 1e-3 and largest > 0.1 else None


class ShiftWarning(UserWarning):
    """The batch to be predicted is unlike the training data.

    Examples
    --------
    >>> import warnings
    >>> from argmaxf.estimators import ShiftWarning
    >>> warnings.simplefilter("error", ShiftWarning)
    """


@dataclass(frozen=True)
class DriftDetector:
    """Compares the scores of a batch with held-out scores of the training rows.

    Scores of two models differ more than those of two similar batches, so the same models score
    both: each scores its share of the batch, as each scored its own fold.
    """

    models: list[LabelScorer]
    kind: str
    scores: Floats

    def warn_if_unlike(self, X: Any, chosen: str, by_batch: bool) -> None:
        """Warn the caller's caller where a label's scores differ clearly and by much."""
        shares = [
            model.scores(X, self.kind)[i :: len(self.models)] for i, model in enumerate(self.models)
        ]
        found = clear_difference(self.scores, np.concatenate(shares))
        if found is None:
            return
        largest, p_value = found
        right = "right for the first cause" if by_batch else "tuned in training, right for neither"
        warnings.warn(
            "this batch is unlike the training data: its scores differ by "
            f"{largest:.2f} (Kolmogorov-Smirnov, p = {p_value:.1g}). {READINGS} The "
            f"method in use, {chosen}, is {right}.",
            ShiftWarning,
            stacklevel=4,
        )
