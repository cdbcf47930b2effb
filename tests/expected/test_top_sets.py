"""Operating points of many top-k sets agree with those of each set."""

import numpy as np
import pytest

from argmaxf.expected.values import TopSets
from tests.judges import operating_point


def test_top_sets_have_the_precision_and_recall_of_their_items():
    falling = np.sort(np.round(np.random.default_rng(0).random(200), 1))[::-1]
    top = TopSets(falling)
    for found in top.at(np.array([0, 1, 60, 200])):
        point = operating_point(falling, np.arange(200) < found["k"])
        assert (found["precision"], found["recall"]) == pytest.approx(point, rel=1e-12)
