"""LabelledSketch: merges, bytes, a bound that holds, and the exact answer after refinement."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argmaxf import LabelledSketch, empirical_f_curve, maximize_empirical_f
from argmaxf.empirical.cuts import CutProblem
from argmaxf.empirical.labelled_sketch import best_in, sketch_of_bins
from argmaxf.measures import MEASURES, Ratio, as_measure

SCORES = [
    lambda rng, n: rng.normal(size=n),
    lambda rng, n: rng.beta(0.5, 3.0, n).astype(np.float32),
    lambda rng, n: np.round(rng.normal(size=n), 1),  # ties
    lambda rng, n: 0.3 + 1e-9 * rng.integers(0, 20, n),  # all in one bin
    lambda rng, n: rng.choice([-np.inf, -2.0, -0.0, 0.0, 5e-324, 1e300, np.inf], n),
]


def rows(seed, n=150):
    rng = np.random.default_rng(seed)
    score = SCORES[seed % len(SCORES)](rng, n)
    order = np.argsort(np.argsort(score)) / n
    y = rng.random(n) < np.clip(order**2 + 0.2 * rng.normal(), 0.0, 1.0)
    weight = rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else None
    return y, score, weight


def asked(work):
    try:
        found = work()
    except ValueError as error:
        return str(error)
    return found.threshold, found.value, found.precision, found.recall, found.k


@given(
    seed=st.integers(0, 10_000),
    measure=st.sampled_from(sorted(MEASURES)),
    zero_division=st.sampled_from([0.0, 0.3, 1.0]),
    min_precision=st.none() | st.floats(0.0, 1.0),
    min_recall=st.none() | st.floats(0.0, 1.0),
    max_selected_rate=st.none() | st.floats(0.0, 1.0),
)
def test_refined_threshold_is_that_of_the_arrays(seed, measure, zero_division, **limits):
    y, score, weight = rows(seed)
    sketch = LabelledSketch.from_arrays(y, score, weight)
    problem = CutProblem.of(1.0, measure, zero_division, **limits)

    def between(low, high):
        there = (score >= low) & (score <= high)
        yield y[there], score[there], None if weight is None else weight[there]

    options = {"measure": measure, "zero_division": zero_division, **limits}
    expected = asked(lambda: maximize_empirical_f(y, score, sample_weight=weight, **options))
    found = asked(lambda: best_in(sketch, problem, between).best)
    np.testing.assert_equal(found, expected)


@given(seed=st.integers(0, 10_000), measure=st.sampled_from(sorted(MEASURES)))
def test_gap_bounds_how_much_better_the_exact_threshold_is(seed, measure):
    y, score, weight = rows(seed)
    found = LabelledSketch.from_arrays(y, score, weight).tune(measure=measure)
    best = maximize_empirical_f(y, score, sample_weight=weight, measure=measure)
    assert found.value - 1e-12 <= best.value <= found.value + found.gap + 1e-12


@given(seed=st.integers(0, 10_000))
def test_value_of_the_threshold_is_the_exact_one_of_all_rows(seed):
    y, score, _ = rows(seed)
    found = LabelledSketch.from_arrays(y, score).tune()
    chosen = score >= found.threshold
    true = np.count_nonzero(chosen & y)
    assert found.k == np.count_nonzero(chosen)
    assert found.value == pytest.approx(2 * true / max(found.k + y.sum(), 1), rel=1e-14)


@given(seed=st.integers(0, 10_000), cut=st.integers(0, 150))
def test_sum_of_two_parts_is_the_sketch_of_all(seed, cut):
    y, score, weight = rows(seed)
    parts = [
        LabelledSketch.from_arrays(y[part], score[part], None if weight is None else weight[part])
        for part in (slice(cut), slice(cut, None))
        if y[part].size
    ]
    both = sum(parts, start=LabelledSketch())
    assert both.to_bytes() == LabelledSketch.from_arrays(y, score, weight).to_bytes()
    assert both.n == y.size


def test_curve_holds_every_threshold_where_bins_hold_one_score():
    y, score = [0, 1, 1, 0], [0.125, 0.25, 0.5, 0.75]
    found, expected = LabelledSketch.from_arrays(y, score).curve(), empirical_f_curve(y, score)
    for name in ("threshold", "precision", "recall", "fbeta"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("resolution", [1, 16, 256])
def test_curve_lies_on_the_exact_curve(resolution):
    y, score, _ = rows(0, 4_000)
    curve = LabelledSketch.from_arrays(y, score).curve(beta=2.0, resolution=resolution)
    powers = np.unique([np.sign(score), np.frexp(score)[1]], axis=1).shape[1]
    assert powers < curve.threshold.size <= 1 + resolution * powers
    for threshold, value, recall in zip(curve.threshold, curve.value, curve.recall, strict=True):
        chosen = score >= threshold
        true, k = np.count_nonzero(chosen & y), np.count_nonzero(chosen)
        assert value == pytest.approx(5 * true / (k + 4 * y.sum()), rel=1e-14)
        assert recall == pytest.approx(true / y.sum(), rel=1e-14)


def test_bytes_come_back_and_a_copy_by_pickle_too():
    sketch = LabelledSketch.from_arrays(*rows(1))
    for copy in (LabelledSketch.from_bytes(sketch.to_bytes()), pickle.loads(pickle.dumps(sketch))):
        assert copy.tune() == sketch.tune()
        assert copy.to_bytes() == sketch.to_bytes()


def test_altered_bytes_are_refused():
    data = LabelledSketch.from_arrays([0, 1, 1], [0.1, 0.2, 0.3]).to_bytes()
    with pytest.raises(ValueError, match="not a labelled sketch"):
        LabelledSketch.from_bytes(b"argmaxf\n" + data[8:])
    with pytest.raises(ValueError, match="sketch version must be 1, got 2"):
        LabelledSketch.from_bytes(data[:8] + b"\x02" + data[9:])
    with pytest.raises(ValueError, match=f"expected {len(data)} bytes, got {len(data) - 1}"):
        LabelledSketch.from_bytes(data[:-1])
    for i in range(16, len(data)):
        altered = bytearray(data)
        altered[i] ^= 1
        with pytest.raises(ValueError, match="checksum"):
            LabelledSketch.from_bytes(altered)


def with_checksum(sketch, **columns):
    """The bytes of a sketch with other columns, and a checksum that matches."""
    return sketch_of_bins(sketch.bins._replace(**columns), np.float64).to_bytes()


@pytest.mark.parametrize(
    "columns",
    [
        {"rows": np.array([0.0, 1.0])},
        {"rows": np.array([1.5, 1.0])},
        {"true": np.array([-1.0, 0.0])},
        {"true": np.array([np.nan, 0.0])},
        {"true": np.array([1e308, 0.0]), "false": np.array([1e308, 0.0])},
        {"low": np.array([np.nan, 0.1])},
        {"low": np.array([0x7FF0000000000001, 0]).view(np.float64)},  # a NaN that signals
        {"high": np.array([0.9, 0.1])},  # another bin than that of the lowest score
        {"low": np.array([0.1, 0.3]), "high": np.array([0.1, 0.3])},  # rising
    ],
)
def test_numbers_that_no_rows_have_are_refused(columns):
    sketch = LabelledSketch.from_arrays([1, 0], [0.3, 0.1])
    with pytest.raises(ValueError, match="numbers that no labelled rows have"):
        LabelledSketch.from_bytes(with_checksum(sketch, **columns))


def test_what_a_sketch_cannot_answer_is_refused():
    with pytest.raises(ValueError, match="the sketch must hold at least one row, got none"):
        LabelledSketch().tune()
    with pytest.raises(ValueError, match="the sketch must hold at least one row, got none"):
        LabelledSketch().curve()
    with pytest.raises(ValueError, match=r"resolution must be one of \[1, 2, .* 256\], got 100"):
        LabelledSketch.from_arrays([0, 1], [0.1, 0.2]).curve(resolution=100)
    sketch = LabelledSketch.from_arrays([0, 1], [0.1, 0.2])
    with pytest.raises(ValueError, match="needs the rows, got a sketch"):
        sketch.tune(measure=lambda tp, k, s, n: tp - k)
    with pytest.raises(TypeError, match="only a LabelledSketch can be merged, got list"):
        sketch.merge([0.1])
    with pytest.raises(ValueError, match="y_true and score must be vectors of one length"):
        sketch.update([0, 1], [0.1])


def test_own_ratios_have_a_bound():
    class Weighted(Ratio):
        name = label = "weighted"

        def coefficients(self, number=float):
            return as_measure("f2").coefficients(number)

    y, score, _ = rows(0)
    found = LabelledSketch.from_arrays(y, score).tune(measure=Weighted())
    assert found.value == LabelledSketch.from_arrays(y, score).tune(measure="f2").value


def test_a_change_between_the_passes_is_noticed():
    y, score, _ = rows(3)  # all in one bin
    sketch = LabelledSketch.from_arrays(y, score)
    problem = CutProblem.of(1.0, "f1", 0.0)

    def other(low, high):
        there = (score >= low) & (score <= high)
        yield ~y[there], score[there], None

    with pytest.raises(ValueError, match="must have the same rows each time it is read"):
        best_in(sketch, problem, other)
