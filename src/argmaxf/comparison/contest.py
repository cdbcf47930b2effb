"""The contest: every method's F on the same rows, which no model behind it has seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from argmaxf.comparison.methods import Method
from argmaxf.comparison.trial import Bools, Floats, Ints, Trial, without_advice
from argmaxf.empirical.interval import f_and_pulls
from argmaxf.measures import FBeta

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


def rate_rows(truth: Any, guess: Any, beta: float, weight: Any) -> Rated:
    """Rate one prediction of all rows: macro F, and each row's pull on it."""
    f, pulls = f_and_pulls(truth, guess, FBeta(beta), weight)
    return Rated(float(f.mean()), pulls.mean(axis=1), 1.0)


def rate_sets(truth: Any, guesses: Any, sets: Any, beta: float) -> Rated:
    """Rate predictions of many sets of rows: the mean of their macro F.

    The sets overlap; n rows hold no more than n / size independent ones.
    """
    pairs = zip(sets, guesses, strict=True)
    values = np.array([f_and_pulls(truth[rows], g, FBeta(beta))[0].mean() for rows, g in pairs])
    independent = max(len(truth) / len(sets[0]), 1.0)
    return Rated(float(values.mean()), values - values.mean(), (len(values) * independent) ** -0.5)


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
        if set_size is None:
            return cls(trial, [(rest, [part]) for rest, part in trial.parts()], True)
        random_state = check_random_state(trial.recipe.random_state)
        rng = np.random.default_rng(random_state.randint(2**31))
        parts = trial.parts()
        each = -(-SETS // len(parts))
        drawn = [(rest, _draw(part, set_size, each, rng)) for rest, part in parts]
        return cls(trial, drawn, False)

    @property
    def sets(self) -> list[Ints]:
        """All sets, one part after the other."""
        return [rows for _, sets in self.parts for rows in sets]

    @property
    def rows(self) -> Ints:
        """The rows that take part, in order."""
        return np.unique(np.concatenate(self.sets))

    def guesses(self, method: Method) -> list[Bools]:
        """Return the method's prediction of each set."""
        if not method.wraps:
            own = self.trial.own[method.name]
            return [own[rows] for rows in self.sets]
        scores = self.trial.scores if self.trial.test_scores is None else self.trial.test_scores
        found = []
        for rest, sets in self.parts:
            fitted = self.trial.learned(method, rest)
            with without_advice():
                found += [self.trial.labels.columns(fitted.predict(scores[rows])) for rows in sets]
        return found

    def in_order(self, guesses: list[Bools]) -> Bools:
        """Return one table of predictions, in the order of `rows`, from those of whole parts."""
        return np.concatenate(guesses)[np.argsort(np.concatenate(self.sets))]

    def rate(self, guesses: list[Bools]) -> Rated:
        """Rate the predictions of all sets."""
        truth, beta = self.trial.truth, self.trial.recipe.beta
        if not self.whole:
            return rate_sets(truth, guesses, self.sets, beta)
        return rate_rows(truth[self.rows], self.in_order(guesses), beta, self.weight)

    @property
    def weight(self) -> Floats | None:
        """What each row rated counts; test rows count alike."""
        weight = self.trial.weight
        return None if weight is None or self.trial.is_test else weight[self.rows]


def _draw(rows: Ints, size: int, times: int, rng: np.random.Generator) -> list[Ints]:
    """Return sets of `size` of the rows; a row may come twice where there are fewer."""
    return [rng.choice(rows, size, replace=size > len(rows)) for _ in range(times)]
