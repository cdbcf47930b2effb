"""One suite for all kinds of passes: arrays, chunks of arrays, and batches."""

import gc
import weakref

import numpy as np
import pytest

from argmaxf._base import compiled
from argmaxf._base.arrays import contiguous
from argmaxf._base.validation import NotAProbability
from argmaxf.expected import array_passes, band, node_kernels, pass_kernels
from argmaxf.expected.array_passes import ArrayPasses, BatchPasses
from argmaxf.expected.sets import decide_by_search
from argmaxf.measures import Dice, FBeta, Jaccard
from argmaxf.problem import Problem


def in_batches(p, size=997):
    return BatchPasses(lambda: (p[i : i + size] for i in range(0, p.size, size)))


@pytest.fixture(params=["array", "chunks", "batches"])
def passes_of(request, monkeypatch):
    """A function that makes passes over some items."""
    if request.param == "chunks":
        monkeypatch.setattr(array_passes, "CHUNK", 512)
        monkeypatch.setattr(array_passes, "threads_for", lambda n: 3)
    return in_batches if request.param == "batches" else ArrayPasses


def sets():
    rng = np.random.default_rng(0)
    return {
        "beta": rng.beta(0.5, 5, 5_000),
        "ends": np.array([0.0, 5e-324, 1e-300, 2**-64, 2**-63, 0.5 - 2**-54, 0.5, 1 - 2**-53, 1.0]),
        "8 bits": (rng.integers(0, 256, 4_000) / 255).astype(np.float32),
        "half precision": rng.beta(0.3, 2, 3_000).astype(np.float16),
        "one": np.array([0.3]),
        "minus zero": np.array([-0.0, 0.7]),
    }


@pytest.mark.parametrize("name", sets())
def test_counts_are_those_between_the_edges(passes_of, name):
    p = sets()[name]
    passes = passes_of(p)
    table = passes.counts()
    assert (table.shape, passes.n) == ((band.BINS,), p.size)
    exact = p.astype(np.float64)
    for j in np.flatnonzero(table):
        inside = (exact >= band.LOW_EDGES[j]) & (exact < band.HIGH_EDGES[j])
        inside |= (exact == 1.0) & (j == 0)
        assert table[j] == np.count_nonzero(inside)
    assert table.sum() == p.size


@pytest.mark.parametrize("name", sets())
def test_sums_above_a_threshold(passes_of, name):
    p = sets()[name]
    passes, exact = passes_of(p), p.astype(np.float64)
    for cut in (0.0, 0.3, float(p.max())):
        above = exact[exact > cut]
        found = passes.above(cut)
        np.testing.assert_allclose(found, [exact.sum(), above.size, above.sum()], rtol=1e-13)
    cut = float(np.sort(p)[p.size // 2])
    above = exact[exact > cut]
    least = above.min() if above.size else np.inf
    assert passes.least_above(cut) == least


@pytest.mark.parametrize("name", sets())
@pytest.mark.parametrize("ends", [(0.2, 0.31), (1e-9, 2.0), (0.3, 0.3), (2.0, 2.0)])
def test_sums_around_a_band_and_its_items(passes_of, name, ends):
    p = sets()[name]
    passes, exact = passes_of(p), p.astype(np.float64)
    low, high = ends if ends[0] != ends[1] or ends[0] == 2.0 else [float(exact[0])] * 2
    sums, items = passes.around(low, high, p.size)
    inside = np.sort(exact[(exact >= low) & (exact <= high)])
    np.testing.assert_array_equal(items, inside)
    for side, part in enumerate((exact[exact < low], exact[exact > high])):
        truth = [part.sum(), *(np.sum(part**j * (1 - part)) for j in range(8))]
        np.testing.assert_allclose(sums[side], truth, rtol=1e-12, atol=1e-300)
    if inside.size:
        assert passes.around(low, high, inside.size - 1).items is None


@pytest.mark.parametrize("wrong", [np.nan, -1e-30, 1.0 + 1e-15, np.inf])
def test_what_is_no_probability_is_seen_by_the_first_pass(passes_of, wrong):
    p = np.full(3_000, 0.25)
    p[2_900] = wrong
    with pytest.raises(NotAProbability):
        band.decide(passes_of(p), Problem.of())


@pytest.mark.parametrize("measure", [FBeta(1), Jaccard(), Dice(2.0)], ids=str)
@pytest.mark.parametrize("kind", ["many", "few", "levels"])
def test_the_decision_is_that_of_the_grouped_search(passes_of, kind, measure):
    rng = np.random.default_rng(1)
    p = {
        "many": rng.beta(0.5, 4, 12_000),
        "few": np.exp(rng.normal(size=12_000) - 9),
        "levels": np.round(rng.beta(0.7, 3, 12_000), 2),
    }[kind]
    problem = Problem.of(measure=measure)
    found, truth = band.decide(passes_of(p), problem), decide_by_search(p, problem)
    assert found[:2] == (truth.k, truth.threshold)
    np.testing.assert_allclose(found[2:], (truth.expected, truth.std), rtol=1e-11)


def test_batches_are_read_three_times_with_many_positives_and_twice_with_few():
    rng, read = np.random.default_rng(0), []

    def reader(p):
        def batches():
            read.append(p.size)
            return iter(np.array_split(p, 7))

        return batches

    band.decide(BatchPasses(reader(rng.beta(0.5, 5, 50_000))), Problem.of())
    assert len(read) <= 4
    read.clear()
    band.decide(BatchPasses(reader(np.exp(rng.normal(size=50_000) - 9))), Problem.of())
    assert len(read) <= 3


@pytest.fixture
def kernels_in_python(monkeypatch):
    """Kernels that kernels call run as Python, too, unless they are asked for compiled."""
    monkeypatch.setattr(compiled._work, "in_python", True)


@pytest.mark.usefixtures("kernels_in_python")
def test_compiled_passes_are_what_their_python_is():
    rng = np.random.default_rng(3)
    p = contiguous(np.concatenate([rng.beta(0.5, 3, 1_100), [0.0, 1.0, 0.5]]))
    assert pass_kernels.tally.py_func(p, 0.3)[2] == np.count_nonzero(p > 0.3)
    counts = np.zeros((2, band.BINS), np.int64)
    pass_kernels.add_counts.py_func(p, p.view(np.int64), counts[0])
    pass_kernels.add_counts.compiled(p, p.view(np.int64), counts[1])
    np.testing.assert_array_equal(*counts)
    found = []
    for way in (pass_kernels.add_around.py_func, pass_kernels.add_around.compiled):
        sums, items = np.zeros((2, pass_kernels.SUMS)), np.empty(p.size + 32)
        size = way(p, 0.2, 0.4, sums, items)
        found.append((sums, items[:size]))
        assert way(p, 0.2, 0.4, 0.0 * sums, np.empty(32)) == -1  # no room
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-13)
    np.testing.assert_array_equal(found[0][1], found[1][1])
    assert found[0][1].size == np.count_nonzero((p >= 0.2) & (p <= 0.4))
    assert pass_kernels.least_above.py_func(p, 0.5) == p[p > 0.5].min()


@pytest.mark.usefixtures("kernels_in_python")
@pytest.mark.parametrize("c", [Dice().coefficients(), Dice(1.0).coefficients(), (1, 0, 1, 0, 0)])
def test_compiled_values_of_a_band_are_what_their_python_is(c):
    rng, ratio = np.random.default_rng(4), tuple(map(float, c))
    items, rest = np.sort(rng.beta(0.4, 2, 70)), rng.random(900) * 1e-3
    below = np.array([rest.sum(), *(np.sum(rest**j * (1 - rest)) for j in range(8))])
    sums = np.stack([below, np.zeros(9)])
    most = 70.0 + ratio[4] + max(ratio[1], ratio[2]) * 970
    for split in (True, False):
        given = items, sums, 1.0, most, 1, split, 0.0, ratio
        kernel = node_kernels.decide_band
        np.testing.assert_allclose(kernel.py_func(*given), kernel.compiled(*given), rtol=1e-12)
    steps, may_be = np.array([1.0, 1e-14, -1.0]), np.zeros(4)
    node_kernels.tell_apart.py_func(0, 3, steps, np.ones(3), may_be)
    np.testing.assert_array_equal(may_be, [-1.0, 0.0, 0.0, -1.0])


def test_arrays_are_given_back_at_once():
    passes = ArrayPasses(np.zeros(10))
    held = weakref.ref(passes)
    gc.disable()
    del passes
    gc.enable()
    assert held() is None
