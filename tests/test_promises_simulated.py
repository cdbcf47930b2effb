"""Promises judged on populations whose precision is known: held as often as was said?"""

import numpy as np
import pytest

from argmaxf import PromiseError
from argmaxf.constraints import Constraints
from argmaxf.empirical.ladder import Steps
from argmaxf.empirical.promises import promised_cuts
from benchmarks.promises import (
    CONFIDENCE,
    RATES,
    SIZES,
    SPREADS,
    Population,
    plain,
    promised,
    simulate,
)


def enough(draws):
    """The least part of draws in which a promise must hold: two standard errors off."""
    return CONFIDENCE - 2 * np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / draws)


def test_a_promise_holds_where_a_plain_constraint_does_not():
    methods = {"plain": plain, "promise": promised}
    found = simulate(Population(0.5, SPREADS["blurred"]), 1_000, 120, methods)
    assert found["promise"].held >= enough(120)
    assert found["promise"].found > 0.9
    assert found["plain"].held < 0.7


@pytest.mark.slow
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("n", SIZES)
def test_promises_hold_in_the_population(n, rate, spread):
    found = simulate(Population(rate, SPREADS[spread]), n, 2_000, {"promise": promised})
    assert found["promise"].held >= enough(2_000)


MISLEADING = ["just too low", "good and bad in turn", "bad, then good", "bad unseen above a tie"]


@pytest.mark.slow
@pytest.mark.parametrize("n", [60, 200, 1_000])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("name", MISLEADING)
def test_no_population_breaks_it_whatever_threshold_is_chosen(name, tied, n):
    """Every cut that qualifies is judged, in populations made to mislead the walk."""
    mass, rate = {
        "just too low": ([1.0], [0.8999]),
        "good and bad in turn": (
            [0.02, 0.02, 0.05, 0.05, 0.1, 0.76],
            [0.85, 0.949] * 2 + [0.85, 0.5],
        ),
        "bad, then good": ([0.01, 0.0899, 0.02, 0.8801], [0.0, 1.0, 0.5, 0.1]),
        "bad unseen above a tie": ([0.0202, 0.18, 0.07, 0.7298], [0.0, 1.0, 0.89, 0.2]),
    }[name]
    rng, broken, draws = np.random.default_rng(0), 0, 1_000
    for _ in range(draws):
        block = rng.choice(len(mass), n, p=mass)
        y = rng.random(n) < np.array(rate)[block]
        depth = block + (0.5 if tied else rng.random(n))
        broken += _some_cut_is_bad(y, -depth, np.array(mass), np.array(rate), tied)
    assert broken / draws <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / draws)


def _some_cut_is_bad(y, score, mass, rate, tied):
    steps = Steps.of(y, score)
    try:
        cuts = promised_cuts(steps, Constraints(0.9), 0.95)
    except PromiseError:
        return False
    distinct = np.unique(score)
    below = np.searchsorted(distinct, cuts.edge) - 1
    lower = np.where(below >= 0, distinct[np.maximum(below, 0)], -len(mass) - 1.0)
    depth = -(lower + cuts.edge) / 2
    part = np.clip(depth[:, None] - np.arange(len(mass)), 0, 1)
    part = (part >= 0.5).astype(float) if tied else part
    precision = (part * mass * rate).sum(axis=1) / (part * mass).sum(axis=1)
    return bool((precision < 0.9 - 1e-12).any())
