"""The published algorithms agree with the definition, and with each other."""

from fractions import Fraction

import numpy as np
import pytest

from argmaxf import expected_f_curve
from reproduction.references import chai_2005, jansche_2007, lewis_1995, ye_2012
from tests.judges import curve_40_digits, definition

EXACT = {
    "Ye et al.": lambda p, beta: ye_2012(p, Fraction(beta) ** 2),
    "Chai": chai_2005,
    "Jansche": jansche_2007,
    "argmaxf": lambda p, beta: expected_f_curve(p, beta=beta),
}


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("name", EXACT)
def test_equal_to_the_sum_over_all_label_vectors(name, beta):
    p = np.array([0.3, 0.9, 0.0, 0.55, 1.0, 0.12])
    order = np.argsort(-p, kind="stable")
    f = EXACT[name](p, beta)
    for k in range(p.size + 1):
        selected = np.zeros(p.size, bool)
        selected[order[:k]] = True
        assert f[k] == pytest.approx(float(definition(p, selected, beta)[0]), rel=1e-13)


@pytest.mark.parametrize("name", EXACT)
def test_equal_to_40_digits(name):
    p = np.random.default_rng(0).beta(0.5, 5, 25)
    truth = [float(f) for f in curve_40_digits(p, 1.5)]
    np.testing.assert_allclose(EXACT[name](p, 1.5), truth, rtol=1e-12)


@pytest.mark.parametrize("beta", [0.3, 1.0, 4.0])
def test_bounds_hold(beta):
    for seed in range(20):
        p = np.random.default_rng(seed).beta(0.5, 2, 60)
        low, high = lewis_1995(p, beta)
        f = expected_f_curve(p, beta=beta)
        assert (low <= f * (1 + 1e-12)).all()
        assert (f <= high * (1 + 1e-12)).all()
