"""tune and evaluate on every engine: the answers of the arrays, and one sentence for bad input."""

import numpy as np
import pyarrow as pa
import pytest

from argmaxf import (
    LabelledSketch,
    evaluate,
    f_interval,
    maximize_empirical_f,
    summarize,
    tune,
)
from argmaxf.frames import labelled

FIELDS = ("threshold", "value", "precision", "recall", "k")


@pytest.fixture(params=["in memory", "in batches"])
def held(request, monkeypatch):
    """Both ways: few rows are held, more are counted in bins and read again."""
    if request.param == "in batches":
        monkeypatch.setattr("argmaxf.frames.table.Rows.HELD", 50)
        monkeypatch.setattr(labelled, "PART", 90)
    return request.param


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    score = np.round(rng.beta(0.5, 3, n), 4)
    return {
        "row": np.arange(n),
        "y": (rng.random(n) < score).astype(np.int64),
        "score": score,
        "weight": rng.integers(0, 3, n).astype(float),
        "city": rng.choice(["Bonn", "Lyon", "Oslo"], n, p=[0.7, 0.2, 0.1]),
    }


def same(found, expected):
    for name in FIELDS:
        a, b = getattr(found, name), getattr(expected, name)
        np.testing.assert_array_equal(a, b, err_msg=name)


def test_threshold_is_that_of_the_arrays(engine, held):
    data = rows()
    frame = engine.frame(pa.table(data))
    y, score, weight = data["y"], data["score"], data["weight"]
    same(tune(frame, label="y", score="score"), maximize_empirical_f(y, score))
    found = tune(frame, label="y", score="score", weight="weight", measure="mcc", min_recall=0.6)
    same(
        found,
        maximize_empirical_f(y, score, sample_weight=weight, measure="mcc", min_recall=0.6),
    )


@pytest.mark.parametrize("start", [2**53, -(2**53) - 3, 2**60])
def test_whole_scores_that_floats_would_merge_are_refused_on_every_engine(engine, start):
    frame = engine.frame(pa.table({"y": [0, 0, 1, 1], "s": [start + i for i in range(4)]}))
    with pytest.raises(ValueError, match="column 's' must hold numbers that a float holds exactly"):
        tune(frame, label="y", score="s")


@pytest.mark.slow_on_clusters
def test_segments_have_the_thresholds_of_the_arrays(engine, held):
    data = rows()
    frame = engine.frame(pa.table(data))
    found = tune(frame, label="y", score="score", by="city", min_precision=0.4)
    wanted = maximize_empirical_f(
        data["y"], data["score"], by=np.asarray(data["city"]), min_precision=0.4
    )
    same(found, wanted)
    assert found.segment.tolist() == wanted.segment.tolist()
    assert found.overall.value == pytest.approx(wanted.overall.value, rel=1e-12)
    assert (found.overall.k, found.overall.threshold) == (wanted.overall.k, None)


@pytest.mark.slow_on_clusters
def test_guarantee_is_that_of_the_arrays(engine):
    data = rows(3_000)
    frame = engine.frame(pa.table(data))
    options = {"min_precision": 0.4, "confidence_level": 0.9}
    found = tune(frame, label="y", score="score", **options)
    wanted = maximize_empirical_f(data["y"], data["score"], **options)
    same(found, wanted)
    assert found.guarantee == wanted.guarantee


@pytest.mark.slow_on_clusters
def test_unreachable_constraint_is_the_sentence_of_the_arrays(engine, held):
    data = rows()
    options = {"min_precision": 0.99, "min_recall": 0.8}
    with pytest.raises(ValueError, match="cannot be reached") as expected:
        maximize_empirical_f(data["y"], data["score"], **options)
    with pytest.raises(ValueError, match="cannot be reached") as error:
        tune(engine.frame(pa.table(data)), label="y", score="score", **options)
    assert str(error.value) == str(expected.value)


@pytest.mark.slow_on_clusters
def test_positive_label_may_be_text(engine):
    data = rows()
    data["y"] = np.where(data["y"] == 1, "spam", "ham")
    frame = engine.frame(pa.table(data))
    found = tune(frame, label="y", score="score", pos_label="spam")
    same(found, maximize_empirical_f(data["y"], data["score"], pos_label="spam"))
    with pytest.raises(ValueError, match="pos_label must be one of the labels, got 'eggs'"):
        tune(frame, label="y", score="score", pos_label="eggs")
    with pytest.raises(ValueError, match="column 'y' must hold 0 and 1"):
        tune(frame, label="y", score="score")


@pytest.mark.parametrize("by", [None, "city"])
def test_rows_without_weight_do_not_count_in_a_guarantee(by):
    data = rows(1_000)
    data["weight"] = (data["row"] % 4 > 0).astype(float)
    options = {"min_recall": 0.5, "confidence_level": 0.9}
    frame = pa.table(data)
    found = tune(frame, label="y", score="score", weight="weight", by=by, **options)
    segments = None if by is None else data[by]
    weight = data["weight"]
    same(
        found,
        maximize_empirical_f(
            data["y"], data["score"], sample_weight=weight, by=segments, **options
        ),
    )


@pytest.mark.slow_on_clusters
def test_sketch_of_a_frame_is_that_of_its_arrays(engine):
    data = rows()
    data["score"] = np.append(data["score"][:-6], [-1e300, -3.5, -0.0, 5e-324, 1e9, np.inf])
    found = summarize(engine.frame(pa.table(data)), "score", label="y", weight="weight")
    wanted = LabelledSketch.from_arrays(data["y"], data["score"], data["weight"])
    assert found.to_bytes() == wanted.to_bytes()


def test_intervals_are_those_of_the_arrays(engine):
    data = rows()
    data["label"] = data["score"] >= 0.3
    frame = engine.frame(pa.table(data))
    found = evaluate(frame, label="y", predicted="label", measure="f2")
    assert found == f_interval(data["y"], data["label"], measure="f2")
    for key, each in evaluate(frame, label="y", predicted="label", by="city").items():
        there = np.asarray(data["city"]) == key[0]
        assert each == f_interval(data["y"][there], data["label"][there])


# What is wrong, as a change of the rows, and the sentence about it.
BAD = {
    "NULL label": ({"y": [None, 1.0, 0.0]}, "column 'y' must have a value in every row, got 1 "),
    "other label": ({"y": [0.0, 2.0, 1.0]}, r"column 'y' must hold 0 and 1, got 2\.0 \(1 such"),
    "NULL score": ({"score": [0.1, None, 0.3]}, "column 'score' must have a value in every row"),
    "NaN score": ({"score": [0.1, np.nan, 0.3]}, "column 'score' must have a value in every row"),
    "text score": ({"score": ["a", "b", "c"]}, "column 'score' must hold numbers, got String"),
    "negative weight": (
        {"weight": [1.0, -2.0, 1.0]},
        r"column 'weight' must be finite and not negative, got -2\.0",
    ),
    "NULL weight": ({"weight": [1.0, None, 1.0]}, "column 'weight' must have a value in every"),
    "no weight": ({"weight": [0.0, 0.0, 0.0]}, "column 'weight' must not all be zero"),
    "no rows": (
        {"y": [], "score": [], "weight": [], "city": []},
        "column 'score' must hold at least one score, got none",
    ),
    "no segment": ({"city": ["a", None, "b"]}, r"by must not be null or NaN, got 1 such row"),
}


@pytest.mark.slow_on_clusters
@pytest.mark.parametrize("bad", BAD)
def test_bad_rows_get_one_sentence_on_every_engine(engine, held, bad):
    change, sentence = BAD[bad]
    data = {"y": [0.0, 1.0, 1.0], "score": [0.1, 0.2, 0.3], "weight": [1.0, 1.0, 1.0]}
    data |= {"city": ["a", "a", "b"]} | change
    kinds = {"city": pa.string(), "score": pa.string() if "text" in bad else pa.float64()}
    table = pa.table({n: pa.array(v, kinds.get(n, pa.float64())) for n, v in data.items()})
    by = "city" if "segment" in bad else None
    with pytest.raises(ValueError, match=sentence):
        tune(engine.frame(table), label="y", score="score", weight="weight", by=by)


@pytest.mark.slow_on_clusters
def test_missing_column_is_named_on_every_engine(engine):
    frame = engine.frame(pa.table({"y": [0, 1], "score": [0.1, 0.2]}))
    with pytest.raises(ValueError, match="the frame has no column 'truth'; it has"):
        tune(frame, label="truth", score="score")
    with pytest.raises(ValueError, match="the frame has no column 'guess'; it has"):
        evaluate(frame, label="y", predicted="guess")


def test_bad_labels_of_predictions_get_one_sentence(engine):
    columns = {"y": [0.0, None, 1.0], "label": [0.0, 3.0, 1.0], "other": [0.0, 1.0, 1.0]}
    table = pa.table({name: pa.array(each) for name, each in columns.items()})
    frame = engine.frame(table)
    with pytest.raises(ValueError, match="column 'y' must have a value in every row, got 1 null"):
        evaluate(frame, label="y", predicted="label")
    with pytest.raises(ValueError, match=r"column 'label' must hold 0 and 1, got 3\.0"):
        evaluate(frame, label="other", predicted="label")


@pytest.mark.slow_on_clusters
def test_rows_with_nulls_can_be_dropped(engine, held):
    data = rows()
    y = pa.array(data["y"].astype(float), mask=data["row"] % 7 == 0)
    score = pa.array(data["score"], mask=data["row"] % 5 == 0)
    frame = engine.frame(pa.table({"y": y, "score": score}))
    kept = (data["row"] % 7 != 0) & (data["row"] % 5 != 0)
    found = tune(frame, label="y", score="score", nulls="drop")
    same(found, maximize_empirical_f(data["y"][kept], data["score"][kept]))
