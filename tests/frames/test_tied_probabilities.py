"""Equal probabilities: arrays, frames, files and the command give the same labels by default."""

import json
import warnings

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from argmaxf import TiesWarning, decide, maximize_expected_f
from argmaxf.cli.app import run
from argmaxf.frames import decisions
from argmaxf.measures import FBeta, Tversky

OPTIONS = {
    "F1": {},
    "F0.3": {"beta": 0.3},
    "Jaccard": {"measure": "jaccard"},
    "Tversky": {"measure": Tversky(0.2, 0.7)},
    "smoothed": {"measure": FBeta(2, smooth=3)},
    "MCC": {"measure": "mcc"},
    "G-mean": {"measure": "gmean"},
    "at most 7": {"max_selected": 7},
    "at least 30": {"min_selected": 30},
    "exactly 11": {"min_selected": 11, "max_selected": 11},
    "chance": {"min_precision": 0.4, "confidence_level": 0.9},
}


def tied(n=60, seed=0):
    """Probabilities of few levels, in no order."""
    return np.round(np.random.default_rng(seed).beta(0.6, 2, n), 1)


def segments(n=60):
    return np.random.default_rng(1).choice(["a", "b"], n, p=[0.6, 0.4])


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("by", [None, "s"])
def test_every_place_gives_the_labels_of_the_array(options, by, tmp_path, capsys):
    if by and "min_selected" in options:
        options = {name: value // 2 for name, value in options.items()}
    p, s = tied(), segments()
    exact = maximize_expected_f(p, by=s if by else None, **options).selected.tolist()
    frame = pl.DataFrame({"p": p, "s": s})
    for eager in (frame, frame.to_arrow(), frame.to_pandas()):
        labels = decide(eager, "p", by=by, **options)["label"]
        assert (
            labels.to_pylist() if isinstance(labels, pa.ChunkedArray) else list(labels)
        ) == exact
    path, out = tmp_path / "in.csv", tmp_path / "out.parquet"
    frame.write_csv(path)
    words = [
        "decide",
        str(path),
        "-p",
        "p",
        "-o",
        str(out),
        "--json",
        "--force",
        *words_of(options),
    ]
    assert run([*words, *(["--by", by] if by else [])]) == 0, capsys.readouterr().err
    assert pl.read_parquet(out)["label"].to_list() == exact
    found = json.loads(capsys.readouterr().out)
    assert sum(part["k"] for part in found.get("segments", [found])) == sum(exact)


def words_of(options):
    """The options of the command."""
    named = {Tversky(0.2, 0.7): "tversky:0.2,0.7", FBeta(2, smooth=3): "fbeta:2,3"}
    return [
        word
        for name, value in options.items()
        for word in (f"--{name.replace('_', '-')}", named.get(value, str(value)))
    ]


def test_files_of_many_batches_split_ties_by_the_order_of_rows(tmp_path, capsys):
    rng = np.random.default_rng(2)
    p, s = np.round(rng.beta(0.6, 2, 300_000), 2), rng.integers(0, 5, 300_000)
    out, label = tmp_path / "out.parquet", "label"
    for i, part in enumerate(np.array_split(np.arange(p.size), 3)):
        pl.DataFrame({"p": p[part], "s": s[part]}).write_parquet(tmp_path / f"{i}.parquet")
    files = [str(tmp_path / f"{i}.parquet") for i in range(3)]
    words = ["decide", *files, "-p", "p", "-o", str(out), "--force", "--max-selected", "1003"]
    assert run(words) == 0, capsys.readouterr().err
    exact = maximize_expected_f(p, max_selected=1003).selected
    assert exact.sum() == 1003
    assert (pl.read_parquet(out)[label].to_numpy() == exact).all()
    assert run([*words, "--by", "s"]) == 0, capsys.readouterr().err
    exact = maximize_expected_f(p, by=s, max_selected=1003).selected
    assert (pl.read_parquet(out)[label].to_numpy() == exact).all()


@pytest.mark.slow_on_clusters
@pytest.mark.parametrize("by", [None, "s"])
def test_lazy_frames_say_that_ties_were_kept_together(engine, by):
    p, s = tied(), segments()
    frame = engine.frame(pa.table({"row": np.arange(p.size), "p": p, "s": s}))
    free = maximize_expected_f(p, by=s if by else None)
    found = decisions(frame, "p", by=by)
    assert not found.kept_together  # F never needs a split
    assert sum(each.k for each in found.values()) == free.selected.sum()
    limit = {"max_selected": 7}
    split = maximize_expected_f(p, by=s if by else None, **limit).selected.tolist()
    together = maximize_expected_f(p, by=s if by else None, ties="together", **limit).selected
    assert split != together.tolist()
    if not engine.lazy:
        assert not decisions(frame, "p", by=by, **limit).kept_together
        assert engine.columns(decide(frame, "p", by=by, **limit))["label"] == split
        return
    assert decisions(frame, "p", by=by, **limit).kept_together
    assert not decisions(frame, "p", by=by, ties="together", **limit).kept_together
    with pytest.warns(TiesWarning, match="equal probabilities were kept together"):
        labelled = decide(frame, "p", by=by, **limit)
    assert engine.columns(labelled)["label"] == together.tolist()


def test_a_lazy_frame_warns_only_where_the_labels_would_differ():
    p = tied()
    levels = np.sort(p)[::-1]
    full = int((p >= levels[6]).sum())  # a limit at which no ties need to be split
    frame = pl.LazyFrame({"p": p})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        label = decide(frame, "p", max_selected=full).collect()["label"].to_list()
    assert label == maximize_expected_f(p, max_selected=full).selected.tolist()


def test_a_lazy_frame_without_a_set_of_whole_levels_says_what_to_do():
    frame = pl.LazyFrame({"p": [0.3] * 10})
    with pytest.raises(ValueError, match="no fixed order of rows to split them by: collect it"):
        decide(frame, "p", min_selected=3, max_selected=5)
    assert decide(frame.collect(), "p", min_selected=3, max_selected=5)["label"].sum() >= 3
