"""Parts of a cluster that fail during the passes do not change the answer."""

import os
from pathlib import Path

import numpy as np
import pandas as pd

from argmaxf import decide, maximize_expected_f

PARTS = 4


def parts():
    p = np.random.default_rng(0).beta(0.5, 5, 4_000)
    return p, np.array_split(p, PARTS)


def test_a_spark_task_that_fails_once(spark, tmp_path):
    p, pieces = parts()
    pieces = [piece.tolist() for piece in pieces]
    marks = str(tmp_path)

    def rows(index, _):
        from pyspark import TaskContext

        if index == 1 and TaskContext.get().attemptNumber() == 0:
            Path(marks, "failed").touch()
            raise RuntimeError("this task fails at its first attempt")
        return ((index, value) for value in pieces[index])

    made = spark.sparkContext.parallelize(range(PARTS), PARTS).mapPartitionsWithIndex(rows)
    frame = spark.createDataFrame(made, "part int, p double")
    exact = maximize_expected_f(p, ties="together")
    chosen = decide(frame, "p").filter("label").select("p").toArrow()["p"].to_numpy()
    assert (tmp_path / "failed").exists()
    np.testing.assert_array_equal(np.sort(chosen), np.sort(p[exact.selected]))


def dying_once(piece, marks):
    """Return a partition; the first worker that is asked for it dies."""
    try:
        Path(marks, "died").touch(exist_ok=False)
    except FileExistsError:
        return pd.DataFrame({"p": piece})
    os._exit(1)


def test_a_dask_worker_that_dies(dask_client, tmp_path):
    import dask.dataframe as dd

    p, pieces = parts()
    dask_client.run(pd.DataFrame)  # both workers are up
    before = set(dask_client.scheduler_info()["workers"])
    meta = pd.DataFrame({"p": pd.Series(dtype="float64")})
    frame = dd.from_map(dying_once, pieces, marks=str(tmp_path), meta=meta)
    labelled = decide(frame, "p").compute()
    assert (tmp_path / "died").exists()
    assert set(dask_client.scheduler_info()["workers"]) != before
    exact = maximize_expected_f(p, ties="together")
    np.testing.assert_array_equal(np.sort(labelled["p"]), np.sort(p))
    assert labelled["label"].sum() == exact.k
    assert labelled["p"][labelled["label"]].min() == exact.threshold
