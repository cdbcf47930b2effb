"""The contest: every method's F on the same rows, which no model behind it has seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from argmaxf._base.arrays import Bools, Floats, Ints
from argmaxf.comparison.learned import fitted, learned
from argmaxf.comparison.methods import Method
from argmaxf.comparison.trial import Trial
from argmaxf.empirical.interval import f_and_influences
from argmaxf.measures import Measure

SETS = 400  # how many sets are drawn where their size is given


@dataclass(frozen=True)
class Rated:
    """A method's F on held-out rows, and its parts that pair with another method's."""

    value: float
    parts: Floats
    spread: float  # what turns the root sum of squared differences of parts into a standard error

    def std_error(self, other: Rated | None = None) -> float:
        """Return the standard error of F, or of its difference from that of another method."""
        parts = self.parts if other is None else self.parts - other.parts
        return float(self.spread * np.sqrt(np.sum(parts**2)))


def rate_rows(truth: Any, guess: Any, measure: Measure, weight: Any) -> Rated:
    """Rate one prediction of all rows: macro F, or another measure, and each row's pull on it."""
    f, pulls = f_and_influences(truth, guess, measure, weight)
    return Rated(float(f.mean()), pulls.mean(axis=1), 1.0)


def rate_sets(truth: Any, guesses: Any, sets: Any, measure: Measure) -> Rated:
    """Rate predictions of many sets of rows: the mean of their macro F.

    The sets overlap; n rows hold no more than n / size independent ones.
    """
    pairs = zip(sets, guesses, strict=True)
    values = np.array([f_and_influences(truth[rows], g, measure)[0].mean() for rows, g in pairs])
    independent = max(len(truth) / len(sets[0]), 1.0)
    return Rated(float(values.mean()), values - values.mean(), (len(values) * independent) ** -0.5)


@dataclass(frozen=True)
class Said:
    """What a method said of one set: the labels it selects, and the scores it decides by."""

    selected: Bools
    scores: Floats | None


@dataclass(frozen=True)
class Contest:
    """The sets of rows that are predicted, and how each method does on them.

    Each part is the rows that a method may learn from, and the sets it then predicts: one set of
    all rows of the part, or many of the size that will be predicted at a time.
    """

    trial: Trial
    parts: list[tuple[Ints, list[Ints]]]
    whole: bool  # whether each row is predicted once

    @classmethod
    def of(cls, trial: Trial, set_size: int | None) -> Contest:
        """Return the contest on whole parts, or on sets of a size drawn from them."""
        if trial.is_test:
            return cls(trial, [(trial.held_out, [np.arange(len(trial.rated_target))])], True)
        if set_size is None or trial.stream:
            return cls(trial, [(rest, [part]) for rest, part in trial.parts()], True)
        random_state = check_random_state(trial.recipe.random_state)
        rng = np.random.default_rng(random_state.randint(2**31))
        parts = trial.parts()
        each = -(-SETS // len(parts))
        often = None if trial.recipe.deploy_rate is None else trial.rated_weight
        drawn = [(rest, _draw(part, set_size, each, rng, often)) for rest, part in parts]
        return cls(trial, drawn, False)

    @property
    def sets(self) -> list[Ints]:
        """All sets, one part after the other."""
        return [rows for _, sets in self.parts for rows in sets]

    @property
    def rows(self) -> Ints:
        """The rows that take part, in order."""
        return np.unique(np.concatenate(self.sets))

    @property
    def batch(self) -> int:
        """The most rows decided at once; a stream's threshold is that of the rows learned from."""
        batches = [rest for rest, _ in self.parts] if self.trial.stream else self.sets
        return max(map(len, batches))

    def said(self, method: Method) -> list[Said]:
        """Return what the method says of each set."""
        trial = self.trial
        if not method.wraps and not method.members:
            own, scores = trial.own[method.name], trial.own_scores[method.name]
            return [Said(own[rows], scores[rows]) for rows in self.sets]
        if trial.is_test:
            return [self._say(fitted(trial, method), trial.X_test)]
        found = []
        for rest, sets in self.parts:
            made = learned(trial, method, rest)
            found += [self._say(made, trial.table[rows]) for rows in sets]
        return found

    def _say(self, classifier: Any, X: Any) -> Said:
        """Return what a fitted method says of rows."""
        scores = classifier._scorer.predict(X)
        if self.trial.stream and hasattr(classifier, "freeze"):
            classifier = classifier.freeze()
        return Said(self.trial.labels.columns(classifier.predict(X)), scores)

    def in_order(self, tables: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return one table, in the order of `rows`, from those of whole parts."""
        return np.concatenate(tables)[np.argsort(np.concatenate(self.sets))]

    def rate(self, said: Sequence[Said]) -> Rated:
        """Rate what a method said of all sets."""
        truth, measure = self.trial.truth, self.trial.recipe.chance
        guesses = [each.selected for each in said]
        if not self.whole:
            return rate_sets(truth, guesses, self.sets, measure)
        return rate_rows(truth[self.rows], self.in_order(guesses), measure, self.weight)

    @property
    def weight(self) -> Floats | None:
        """What each row rated counts; test rows count alike."""
        weight = self.trial.rated_weight
        return None if weight is None or self.trial.is_test else weight[self.rows]


def _draw(
    rows: Ints, size: int, times: int, rng: np.random.Generator, often: Floats | None
) -> list[Ints]:
    """Return sets of `size` of the rows; a row may come twice where there are fewer.

    `often` is how often each row comes where the rate of positives is another one.
    """
    p = None if often is None else often[rows] / often[rows].sum()
    replace = size > len(rows) or often is not None
    return [rng.choice(rows, size, replace=replace, p=p) for _ in range(times)]
