"""Spreads and operating points of many top-k sets agree with those of each set."""

import numpy as np
import pytest

from argmaxf import expected_f
from argmaxf.expected.values import TopSets, top_spreads
from tests.judges import operating_point

rng = np.random.default_rng(0)
ITEMS = {
    "one": np.array([0.3]),
    "few": rng.random(7) ** 2,
    "ties": np.round(rng.random(200), 1),
    "zeros": np.zeros(4),
    "skewed": rng.random(1000) ** 6,
    "large": rng.random(20_000) ** 6,  # beyond the sets that are sorted and looked at item by item
}


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
        assert (found["precision"], found["recall"]) == pytest.approx(point, rel=1e-12)
