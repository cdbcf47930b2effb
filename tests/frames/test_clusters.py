"""Real clusters: processes that find each other on loopback, one of which is killed."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from argmaxf import maximize_empirical_f, maximize_expected_f, tune
from argmaxf.frames import decisions, labelled, solve

CHANGED = "the frame must have the same rows each time it is read"
N, PARTS = 40_000, 8


def rows():
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 5.0, N)
    return pd.DataFrame({"p": p, "y": rng.random(N) < p})


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def spark_process(kind, *arguments, folder):
    """A master or worker in a process group of its own."""
    import pyspark

    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    command = [program, f"org.apache.spark.deploy.{kind.lower()}.{kind}", "--host", "127.0.0.1"]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with (folder / f"{kind}-{len(list(folder.iterdir()))}.log").open("w") as log:
        process = subprocess.Popen(
            [*map(str, (*command, *arguments))],
            stdout=log,
            stderr=log,
            env=environment | {"SPARK_WORKER_DIR": str(folder)},
            start_new_session=True,
        )
    try:
        yield process.pid
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(port):
    for _ in range(300):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError(f"nothing listens on port {port}")


@pytest.mark.slow
def test_standalone_cluster_answers_though_a_worker_dies(tmp_path):
    pytest.importorskip("pyspark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("PySpark needs Java 17 or newer")
    frame, folder, logs = rows(), tmp_path / "rows", tmp_path / "logs"
    folder.mkdir()
    logs.mkdir()
    for i, part in enumerate(np.array_split(np.arange(N), PARTS)):
        pl.from_pandas(frame.iloc[part]).write_parquet(folder / f"{i}.parquet")
    port, web = free_port(), free_port()
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        start = lambda *words: stack.enter_context(spark_process(*words, folder=logs))  # noqa: E731
        start("Master", "--port", port, "--webui-port", web)
        wait_for(port)
        limits = "--cores", 1, "--memory", "1g", "--webui-port", 0
        groups = [start("Worker", *limits, master) for _ in range(2)]
        program = Path(__file__).with_name("spark_program.py")
        done = subprocess.run(
            [sys.executable, program, master, folder, str(groups[0])],
            capture_output=True,
            text=True,
            env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            timeout=500,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    exact = maximize_expected_f(frame["p"], ties="together")
    best = maximize_empirical_f(frame["y"], frame["p"])
    wanted = {"k": exact.k, "threshold": exact.threshold, "best": best.threshold}
    assert found["executors"] == 2
    assert found["whole"] == wanted
    assert found["killed"]
    assert found["after a worker died"] == wanted
    assert CHANGED in found["changing, decisions"]
    assert CHANGED in found["changing, tune"]


def part_of(piece, marks):
    """Return a partition; a worker that is asked once there is a mark dies, one of them only."""
    with suppress(FileNotFoundError):
        Path(marks, "die").rename(Path(marks, "died"))
        os._exit(1)
    return piece


def changing_part(piece):
    share = 0.5 + 0.5 * os.urandom(1)[0] / 255
    return piece.assign(p=piece["p"] * share)


@pytest.mark.slow
def test_dask_workers_answer_though_one_dies_between_the_passes(dask_client, tmp_path, monkeypatch):
    import dask.dataframe as dd

    monkeypatch.setattr("argmaxf.frames.table.Rows.HELD", 1_000)
    frame = rows()
    pieces = [frame.iloc[i] for i in np.array_split(np.arange(N), PARTS)]
    dask_client.run(pd.DataFrame)  # both workers are up
    assert len(dask_client.scheduler_info()["workers"]) == 2
    meta = frame.iloc[:0]
    given = dd.from_map(part_of, pieces, marks=str(tmp_path), meta=meta)
    around = solve.ColumnPasses.around

    def dying(self, *arguments):
        monkeypatch.setattr(solve.ColumnPasses, "around", around)
        Path(tmp_path, "die").touch()
        return around(self, *arguments)

    monkeypatch.setattr(solve.ColumnPasses, "around", dying)
    exact = maximize_expected_f(frame["p"], ties="together")
    decision = decisions(given, "p")[()]
    assert (tmp_path / "died").exists()
    assert (decision.k, decision.threshold) == (exact.k, exact.threshold)
    between = labelled.LabelledRows.between
    (tmp_path / "died").unlink()

    def dying_again(self, *arguments):
        Path(tmp_path, "die").touch()
        return between(self, *arguments)

    monkeypatch.setattr(labelled.LabelledRows, "between", dying_again)
    best = maximize_empirical_f(frame["y"], frame["p"])
    assert tune(given, label="y", score="p").threshold == best.threshold
    assert (tmp_path / "died").exists()
    changing = dd.from_map(changing_part, pieces, meta=meta)
    with pytest.raises(ValueError, match=CHANGED):
        decisions(changing, "p")
    with pytest.raises(ValueError, match=CHANGED):
        tune(changing, label="y", score="p")
