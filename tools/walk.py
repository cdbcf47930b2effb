"""Print which functions and modules of the library a call visits.

A switch is a step from one module to another, there or back. `--switches 20` adds the pairs of
modules that a call switches between most often. Kernels that run as plain Python, because the data
are too small to be worth compiling, count only with `--plain`: compiled they visit nothing else.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import argmaxf
from argmaxf._base import compiled

PACKAGE = str(Path(argmaxf.__file__).parent)


class Walk(NamedTuple):
    functions: int
    modules: list[str]  # in the order of their first visit
    pairs: Counter[tuple[str, str]]  # how often the walk goes from one module to another

    @property
    def switches(self) -> int:
        return self.pairs.total()


def walk(call: Callable[[], Any], plain: bool = False) -> Walk:
    """Run a call and return where it went; once before, so that imports and compiling are done."""
    call()
    functions, modules, pairs = set(), {}, Counter()
    last = None

    def visit(frame: Any, event: str, _: Any) -> None:
        nonlocal last
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(PACKAGE):
            return
        if compiled._work.in_python and not plain:
            return
        module = file.removeprefix(PACKAGE + "/")
        functions.add((module, frame.f_code.co_qualname))
        modules[module] = True
        if module != last and last is not None:
            pairs[last, module] += 1
        last = module

    sys.setprofile(visit)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Walk(len(functions), list(modules), pairs)


def a_million_numbers() -> Any:
    return argmaxf.maximize_expected_f(np.random.default_rng(0).random(1_000_000) ** 3)


def rows(n: int = 2000) -> tuple[Any, Any]:
    from sklearn.datasets import make_classification

    return make_classification(n, weights=[0.95], random_state=0)


def fit_and_predict() -> Any:
    from sklearn.linear_model import LogisticRegression

    X, y = rows()
    return argmaxf.ExpectedFClassifier(LogisticRegression()).fit(X, y).predict(X)


def a_map() -> Any:
    import torch

    from argmaxf.torch import segment

    torch.manual_seed(0)
    return segment(torch.sigmoid(3 * torch.randn(2, 1, 128, 128) - 3))


def a_frame() -> Any:
    import polars as pl

    rng = np.random.default_rng(0)
    frame = pl.LazyFrame({"p": rng.random(50_000) ** 3, "shop": rng.integers(0, 20, 50_000)})
    return argmaxf.decide(frame, "p", by="shop").collect()


def a_file() -> Any:
    import polars as pl

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.parquet"
        pl.DataFrame({"p": np.random.default_rng(0).random(50_000) ** 3}).write_parquet(path)
        return command(
            "decide", str(path), "-p", "p", "-o", f"{folder}/out.parquet", "--force", "--json"
        )


def compare() -> Any:
    import polars as pl

    X, y = rows()
    with tempfile.TemporaryDirectory() as folder:
        table = pl.DataFrame(X, schema=[f"x{j}" for j in range(X.shape[1])])
        table.with_columns(target=pl.Series(y)).write_csv(f"{folder}/rows.csv")
        return command("compare", f"{folder}/rows.csv", "--target", "target", "--json")


def command(*words: str) -> Any:
    """Run a command of argmaxf, and keep quiet what it prints."""
    from argmaxf.cli.app import run

    with redirect_stdout(io.StringIO()):
        return run(list(words))


WALKS = {
    "a million numbers": a_million_numbers,
    "ExpectedFClassifier, fit and predict": fit_and_predict,
    "argmaxf compare": compare,
    "argmaxf decide FILE": a_file,
    "a frame, by=": a_frame,
    "a map of pixels": a_map,
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", metavar="CALL", help=", ".join(WALKS))
    options.add_argument("--switches", type=int, default=0, help="how many pairs to print")
    options.add_argument("--plain", action="store_true", help="kernels that run as Python count")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    print("| call | functions | modules | switches |\n| --- | --- | --- | --- |")
    for name in given.names or WALKS:
        found = walk(WALKS[name], given.plain)
        print(f"| {name} | {found.functions} | {len(found.modules)} | {found.switches:,} |")
        print("   " + " → ".join(found.modules), file=sys.stderr)
        for (here, there), times in found.pairs.most_common(given.switches):
            print(f"   {times:6,}  {here} → {there}", file=sys.stderr)


if __name__ == "__main__":
    main()
