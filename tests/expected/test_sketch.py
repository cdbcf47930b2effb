import math
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argmaxf import ProbabilitySketch, expected_f, expected_f_curve, maximize_expected_f
from argmaxf.expected.sketch import sketch_of_table
from argmaxf.measures import FBeta, Jaccard

arrays = st.lists(
    st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, 1e-30, 1 - 2**-53])), max_size=40
).map(np.array)


@given(st.lists(arrays, min_size=2, max_size=5), st.randoms())
@settings(deadline=None)
def test_merging_in_any_order_and_split_is_one_array(parts, random):
    whole = ProbabilitySketch.from_array(np.concatenate(parts))
    random.shuffle(parts)
    merged = ProbabilitySketch()
    for part in parts:
        merged = merged + ProbabilitySketch.from_array(part)
    updated = ProbabilitySketch()
    for part in parts:
        updated.update(part)
    for sketch in (merged, updated):
        assert sketch.n == whole.n
        np.testing.assert_allclose(sketch._table, whole._table, rtol=1e-12, atol=1e-12)
        if whole.n:
            a, b = sketch.decide(), whole.decide()
            assert (a.k, a.threshold, a.bracket) == (b.k, b.threshold, b.bracket)
            assert a.expected == pytest.approx(b.expected, rel=1e-12)


@pytest.mark.parametrize("measure", [FBeta(0.2), FBeta(), FBeta(3), Jaccard()], ids=str)
def test_the_bracket_holds_the_exact_threshold(measure):
    for seed in range(5):
        p = np.random.default_rng(seed).beta(0.5, 5, 30_000)
        exact = maximize_expected_f(p, measure=measure)
        decision = ProbabilitySketch.from_array(p).decide(measure=measure)
        low, high = decision.bracket
        assert low <= exact.threshold <= high
        assert high - low < 0.2 * exact.threshold
        assert decision.selected is None
        # the best cut between groups is a real cut: its value is that of the curve, and close
        curve = expected_f_curve(p, measure=measure)
        assert decision.expected == pytest.approx(curve[decision.k], rel=1e-12)
        assert decision.k == np.count_nonzero(p >= decision.threshold)
        assert exact.expected * (1 - 1e-3) < decision.expected <= exact.expected * (1 + 1e-13)


def test_one_sketch_answers_every_beta_and_both_measures():
    p = np.random.default_rng(0).beta(0.5, 5, 5_000)
    sketch = ProbabilitySketch.from_array(p)
    for beta in (0.1, 1.0, 7.0):
        cut = sketch.decide(beta=beta)
        truth = expected_f(p, p >= cut.threshold, beta=beta)
        assert sketch.expected_f(threshold=cut.threshold, beta=beta) == pytest.approx(
            truth, rel=1e-9
        )
        assert sketch.expected_f(k=cut.k, beta=beta).mean == pytest.approx(truth.mean, rel=1e-12)
        assert (cut.expected, cut.std) == pytest.approx(tuple(truth), rel=1e-9)


def test_values_inside_a_group_are_close():
    p = np.random.default_rng(1).beta(0.5, 5, 50_000)
    curve = expected_f_curve(p)
    sketch = ProbabilitySketch.from_array(p)
    for k in (10, 500, 7_000, 49_999):
        assert sketch.expected_f(k=k).mean == pytest.approx(curve[k], rel=2e-4)


def test_bad_questions_are_named():
    sketch = ProbabilitySketch.from_array([0.1, 0.2])
    with pytest.raises(ValueError, match="either k or threshold, got k=None, threshold=None"):
        sketch.expected_f()
    with pytest.raises(ValueError, match="k must lie between 0 and n = 2, got 3"):
        sketch.expected_f(k=3)
    with pytest.raises(ValueError, match=r"threshold must lie in \[0, 1\], got 2"):
        sketch.expected_f(threshold=2)
    with pytest.raises(ValueError, match="at least one probability"):
        ProbabilitySketch().decide()


def test_a_bad_value_adds_nothing():
    sketch = ProbabilitySketch.from_array([0.1])
    with pytest.raises(ValueError, match=r"got nan at position 1"):
        sketch.update([0.5, math.nan])
    assert sketch.n == 1


def test_heavy_counts_of_one_value_do_not_drift():
    value = 0.3 + 2**-9 - 1e-13  # near the edge of its group
    sketch = ProbabilitySketch.from_array(np.full(3_000_000, value))
    assert sketch.mean_positives == pytest.approx(3_000_000 * value, rel=1e-15)


@given(arrays)
@settings(deadline=None)
def test_bytes_come_back_the_same(p):
    sketch = ProbabilitySketch.from_array(p)
    again = ProbabilitySketch.from_bytes(sketch.to_bytes())
    np.testing.assert_array_equal(again._table, sketch._table)


def test_size_on_disk():
    rng = np.random.default_rng(0)
    everywhere = np.concatenate(
        [10 ** rng.uniform(-25, 0, 200_000), 1 - 10 ** rng.uniform(-17, 0, 200_000)]
    )
    assert len(ProbabilitySketch.from_array(everywhere).to_bytes()) < 500_000


@given(st.data())
@settings(deadline=None)
def test_altered_bytes_are_refused(data):
    good = ProbabilitySketch.from_array([0.1, 0.5, 0.9]).to_bytes()
    cut = data.draw(st.integers(0, len(good) - 1))
    with pytest.raises(ValueError, match="sketch"):
        ProbabilitySketch.from_bytes(good[:cut])
    place = data.draw(st.integers(0, len(good) - 1))
    flip = data.draw(st.integers(1, 255))
    bad = bytearray(good)
    bad[place] ^= flip
    with pytest.raises(ValueError, match="sketch"):
        ProbabilitySketch.from_bytes(bytes(bad))
    with pytest.raises(ValueError, match="sketch"):
        ProbabilitySketch.from_bytes(good + b"\0")


def test_an_unknown_version_is_named():
    good = ProbabilitySketch.from_array([0.1]).to_bytes()
    body = good[:8] + struct.pack("<H", 99) + good[10:-4]
    with pytest.raises(ValueError, match="sketch version must be 1, got 99"):
        ProbabilitySketch.from_bytes(body + struct.pack("<I", zlib.crc32(body)))


def test_a_table_of_another_size_is_named():
    good = ProbabilitySketch.from_array([0.1]).to_bytes()
    body = good[:12] + struct.pack("<I", 99) + good[16:-4]
    with pytest.raises(ValueError, match="7364 rows of 8 columns, got 99 rows of 8 columns"):
        ProbabilitySketch.from_bytes(body + struct.pack("<I", zlib.crc32(body)))


def test_only_a_sketch_is_merged():
    sketch = ProbabilitySketch.from_array([0.1])
    with pytest.raises(
        TypeError, match="only a ProbabilitySketch can be merged, got list; update adds data"
    ):
        sketch.merge([0.5])
    assert sketch.n == 1


def test_impossible_contents_are_refused_even_with_a_good_checksum():
    good = ProbabilitySketch.from_array([0.1]).to_bytes()
    body = good[:-12] + struct.pack("<d", math.nan)
    with pytest.raises(ValueError, match="numbers that no probabilities have"):
        ProbabilitySketch.from_bytes(body + struct.pack("<I", zlib.crc32(body)))


def altered(sketch, change):
    """Return the bytes of a sketch with other numbers and a right checksum."""
    table = sketch._table.copy()
    change(table)
    return sketch_of_table(table).to_bytes()


def row_of(table):
    return int(table[1:-2, 0].argmax()) + 1


IMPOSSIBLE = {
    "a place beyond the group": lambda t, i: t.__setitem__((i, 1), 3 * t[i, 0]),
    "a place whose powers overflow": lambda t, i: t.__setitem__((i, 1), 1e300),
    "a fraction of an item": lambda t, i: t.__setitem__((i, 0), t[i, 0] + 0.5),
    "fewer than none": lambda t, i: t.__setitem__((i, 0), -t[i, 0]),
    "squares above the count": lambda t, i: t.__setitem__((i, 3), 1.01 * t[i, 0]),
    "negative squares": lambda t, i: t.__setitem__((i, 3), -1.0),
    "squares below the mean's": lambda t, i: t.__setitem__((i, slice(1, 4)), [0.9 * t[i, 0], 0, 0]),
    "fourth powers above squares": lambda t, i: t.__setitem__((i, 5), t[i, 3] * 1.5),
    "third powers too large": lambda t, i: t.__setitem__((i, 4), t[i, 3]),
    "sixth powers too small": lambda t, i: t.__setitem__((i, 7), 0.0),
    "p = 1 with places": lambda t, i: t.__setitem__((0, slice(0, 2)), [5.0, 1.0]),
    "tiny ones above 2^-64": lambda t, i: t.__setitem__((-2, slice(0, 2)), [5.0, 6.0]),
    "not a number": lambda t, i: t.__setitem__((i, 6), np.nan),
}


@pytest.mark.parametrize("kind", IMPOSSIBLE)
def test_impossible_numbers_are_refused_whatever_the_checksum(kind):
    sketch = ProbabilitySketch.from_array(np.random.default_rng(0).random(100_000))
    data = altered(sketch, lambda table: IMPOSSIBLE[kind](table, row_of(table)))
    with pytest.raises(ValueError, match="it holds numbers that no probabilities have"):
        ProbabilitySketch.from_bytes(data)


@given(
    st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0, 5e-324, 2**-64]), max_size=50),
    st.integers(1, 5),
)
def test_every_real_summary_is_read_back(p, times):
    sketch = ProbabilitySketch.from_array(np.array(p * times))
    again = ProbabilitySketch.from_bytes(sketch.to_bytes())
    np.testing.assert_array_equal(again._table, sketch._table)
