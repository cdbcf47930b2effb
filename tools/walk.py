"""Walks through the house: which functions and modules a call visits; prints a table.

A switch is a step from one module to another, there or back.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import argmaxf

PACKAGE = str(Path(argmaxf.__file__).parent)


class Walk(NamedTuple):
    functions: int
    modules: list[str]  # in the order of their first visit
    switches: int


def walk(call: Callable[[], Any]) -> Walk:
    """Run a call and return where it went; once before, so that imports and compiling are done."""
    call()
    functions, modules, switches, last = set(), [], 0, None

    def visit(frame: Any, event: str, _: Any) -> None:
        nonlocal switches, last
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(PACKAGE):
            return
        module = file.removeprefix(PACKAGE + "/")
        functions.add((module, frame.f_code.co_qualname))
        if module not in modules:
            modules.append(module)
        switches += module != last
        last = module

    sys.setprofile(visit)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Walk(len(functions), modules, switches)


def five_numbers() -> Any:
    return argmaxf.maximize_expected_f([0.05, 0.45, 0.1, 0.3, 0.4])


def many_numbers(n: int = 10_000_000) -> Any:
    return argmaxf.maximize_expected_f(np.random.default_rng(0).random(n) ** 3)


def a_frame() -> Any:
    import polars as pl

    rng = np.random.default_rng(0)
    frame = pl.LazyFrame({"p": rng.random(50_000) ** 3, "shop": rng.integers(0, 20, 50_000)})
    return argmaxf.decide(frame, "p", by="shop").collect()


def a_file() -> Any:
    import polars as pl

    from argmaxf.commands.app import run

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.parquet"
        pl.DataFrame({"p": np.random.default_rng(0).random(50_000) ** 3}).write_parquet(path)
        return run(["decide", str(path), "-p", "p", "-o", f"{folder}/out.parquet", "--json"])


def auto_fit() -> Any:
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression

    X, y = make_classification(2000, weights=[0.95], random_state=0)
    return argmaxf.AutoFClassifier(LogisticRegression()).fit(X, y)


def compare_command() -> Any:
    from argmaxf.commands.app import run

    with tempfile.TemporaryDirectory() as folder:
        return run(["demo", "--report", f"{folder}/report.html", "--json"])


WALKS = {
    "five numbers": five_numbers,
    "ten million numbers": many_numbers,
    "a frame, by=": a_frame,
    "a file": a_file,
    "AutoFClassifier.fit": auto_fit,
    "argmaxf demo": compare_command,
}


def main() -> None:
    warnings.simplefilter("ignore")
    names = sys.argv[1:] or list(WALKS)
    for name in names:
        found = walk(WALKS[name])
        print(
            f"| {name} | {found.functions} / {len(found.modules)} / {found.switches} |",
            file=sys.stderr,
        )
        print("   " + " → ".join(found.modules), file=sys.stderr)


if __name__ == "__main__":
    main()
