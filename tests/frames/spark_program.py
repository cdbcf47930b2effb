"""What a user runs on a Spark cluster: decide and tune, while a worker is killed in the middle.

Its arguments: the master, a Parquet folder, and the process group of the worker to kill. It prints
the answers as JSON. The frame that changes returns other numbers each time it is read.
"""

import json
import os
import signal
import sys

from pyspark.sql import SparkSession, functions

from argmaxf import tune
from argmaxf.frames import decisions
from argmaxf.frames.expression_passes import ExpressionPasses
from argmaxf.frames.table import Rows

master, path, group = sys.argv[1:]
Rows.HELD = 1_000  # so that passes are made
session = (
    SparkSession.builder.master(master)
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.executor.memory", "512m")
    .config("spark.sql.shuffle.partitions", "4")
    .getOrCreate()
)
session.sparkContext.setLogLevel("OFF")
frame = session.read.parquet(path)


def answers():
    decision = decisions(frame, "p")[()]
    best = tune(frame, label="y", score="p")
    return {"k": decision.k, "threshold": decision.threshold, "best": best.threshold}


def executors():
    found = session.sparkContext._jsc.sc().getExecutorMemoryStatus()
    return found.size() - 1  # without the driver


results = {"whole": answers(), "executors": executors()}

around = ExpressionPasses.around


def dying(self, *arguments):
    """The second pass of a decision; a worker dies before it."""
    ExpressionPasses.around = around
    os.killpg(int(group), signal.SIGKILL)
    return around(self, *arguments)


ExpressionPasses.around = dying
results["after a worker died"] = answers()
results["killed"] = ExpressionPasses.around is around

seed = functions.udf(lambda p: p * (0.5 + 0.5 * os.urandom(1)[0] / 255), "double")
changing = frame.withColumn("p", seed.asNondeterministic()("p"))
for name, work in (
    ("decisions", lambda: decisions(changing, "p")),
    ("tune", lambda: tune(changing, label="y", score="p")),
):
    try:
        work()
        results[f"changing, {name}"] = ""
    except ValueError as error:
        results[f"changing, {name}"] = str(error)
print(json.dumps(results))
session.stop()
