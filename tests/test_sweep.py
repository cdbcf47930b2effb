"""Many β and many sizes at once say what one at a time does, which other tests judge."""

import numpy as np
import pytest

from argmaxf import expected_f, expected_f_curve, maximize_expected_f
from argmaxf.expected.sweep import curves_of_betas, decide_betas, top_spreads
from argmaxf.expected.values import TopSets, operating_point

BETAS = [0.1, 0.5, 1.0, 2.0, 10.0]
rng = np.random.default_rng(0)
ITEMS = {
    "one": np.array([0.3]),
    "few": rng.random(7) ** 2,
    "ties": np.round(rng.random(200), 1),
    "zeros": np.zeros(4),
    "skewed": rng.random(1000) ** 6,
    "large": rng.random(20_000) ** 6,  # beyond the sets that are sorted and looked at item by item
}


@pytest.mark.parametrize("name", ITEMS)
def test_each_beta_is_decided_as_by_itself(name):
    p = ITEMS[name]
    found = decide_betas(p, BETAS)
    each = [maximize_expected_f(p, beta=beta) for beta in BETAS]
    assert found.k.tolist() == [d.k for d in each]
    assert found.threshold.tolist() == [d.threshold for d in each]
    np.testing.assert_allclose(found.expected, [d.expected for d in each], rtol=1e-14)
    np.testing.assert_allclose(found.std, [d.std for d in each], rtol=1e-12)


@pytest.mark.parametrize("name", ITEMS)
def test_each_curve_is_the_curve_of_its_beta(name):
    p = ITEMS[name]
    for curve, beta in zip(curves_of_betas(p, BETAS[::2]), BETAS[::2], strict=True):
        np.testing.assert_allclose(curve, expected_f_curve(p, beta=beta), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "measure"),
    [*((name, measure) for name in ITEMS for measure in ("fbeta", "jaccard")), ("few", "mcc")],
)
def test_each_spread_is_that_of_its_set(name, measure):
    p = ITEMS[name]
    sizes = np.unique(np.geomspace(1, p.size, 8).astype(np.int64))
    falling, rank = np.sort(p)[::-1], np.arange(p.size)
    each = [expected_f(falling, rank < k, measure=measure).std for k in sizes]
    np.testing.assert_allclose(top_spreads(p, sizes, measure=measure), each, rtol=1e-9, atol=1e-15)


def test_top_sets_have_the_precision_and_recall_of_their_items():
    falling = np.sort(ITEMS["ties"])[::-1]
    top = TopSets(falling)
    for found in top.at(np.array([0, 1, 60, 200])):
        point = operating_point(falling, np.arange(200) < found["k"])
        assert (found["precision"], found["recall"]) == pytest.approx(tuple(point), rel=1e-12)


def test_what_is_no_probability_is_named():
    with pytest.raises(ValueError, match=r"proba must be finite and in \[0, 1\], got 1.5"):
        decide_betas([0.2, 1.5], BETAS)
