"""The guarantee of the automatic choice, judged on a population whose precision is known."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from argmaxf import AutoFClassifier, GuaranteeError
from argmaxf.theory import GaussianMixture

LIMITS = {"constraints": {"min_precision": 0.8}, "confidence_level": 0.9}


def held(population, n, draws, **options):
    """In how many draws of n rows the choice has the precision asked for, of those with one."""
    X_new, _ = population.sample(20_000, seed=10**6)
    true = population.posterior(X_new)
    found = []
    for seed in range(draws):
        model = AutoFClassifier(LogisticRegression(), cv=3, **LIMITS, **options)
        try:
            selected = model.fit(*population.sample(n, seed=seed)).predict(X_new) == 1
        except GuaranteeError:
            continue
        found.append(not selected.any() or true[selected].mean() >= 0.8)
    return np.array(found)


def least(draws):
    """The part of draws in which it must hold: two standard errors below the level."""
    level = LIMITS["confidence_level"]
    return level - 2 * np.sqrt(level * (1 - level) / draws)


def test_the_automatic_choice_has_the_precision_it_guarantees():
    found = held(GaussianMixture(D=2, S=2.0, positive_rate=0.3), 1_000, 30)
    assert found.size > 20
    assert found.mean() >= least(found.size)


@pytest.mark.slow
@pytest.mark.parametrize("n", [600, 1_000, 3_000])
@pytest.mark.parametrize(("apart", "rate"), [(2.0, 0.3), (3.0, 0.1), (1.5, 0.5)])
def test_the_automatic_choice_has_the_precision_it_guarantees_in_many_draws(apart, rate, n):
    found = held(GaussianMixture(D=2, S=apart, positive_rate=rate), n, 200)
    assert found.mean() >= least(found.size)


def test_expected_f_guarantees_where_it_is_the_only_method_named():
    X, y = GaussianMixture(D=2, S=2.0, positive_rate=0.3).sample(1_000, seed=0)
    both = AutoFClassifier(LogisticRegression(), cv=3, **LIMITS).fit(X, y)
    assert both.chosen_ == "tuned threshold"
    assert "needs no calibrated probabilities" in both.report_.reason
    alone = AutoFClassifier(LogisticRegression(), cv=3, methods=["expected"], **LIMITS).fit(X, y)
    assert alone.chosen_ == "expected F"
    assert any("if the probabilities are right" in note for note in alone.report_.notes)


@pytest.mark.parametrize("method", ["threshold", "expected", "uncalibrated"])
def test_every_method_that_can_holds_the_rate_of_selected_rows(method):
    X, y = make_classification(20_600, weights=[0.8], flip_y=0.1, random_state=0)
    limits = {"constraints": {"max_selected_rate": 0.05}, "confidence_level": 0.9}
    auto = AutoFClassifier(LogisticRegression(), methods=[method], **limits).fit(X[:600], y[:600])
    assert 0.0 < auto.predict(X[600:]).mean() <= 0.05
    assert "max_selected_rate=0.05" in auto.report_.notes[0]
