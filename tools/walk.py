"""python tools/walk.py CALL: how far a call walks through the house.

Counts the functions of argmaxf that a call enters, the modules they are in, and the switches: how
often the function entered is in another module than the one entered before it. CALL is one of the
names in `CALLS`, or `all`. What importing runs is not counted.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np


class Walk:
    """The functions and modules of argmaxf that were entered, and the switches between modules."""

    def __init__(self) -> None:
        self.functions: set[CodeType] = set()
        self.modules: set[str] = set()
        self.switches = 0
        self._last: str | None = None

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        module = str(frame.f_globals.get("__name__", ""))
        if event != "call" or not module.startswith("argmaxf"):
            return
        self.functions.add(frame.f_code)
        self.modules.add(module)
        self.switches += self._last not in (None, module)
        self._last = module

    def __str__(self) -> str:
        return f"{len(self.functions)} / {len(self.modules)} / {self.switches:,}"


def walked(call: Callable[[], Any]) -> Walk:
    """Run the call twice, the first time to import and compile, and return the second walk."""
    call()
    walk = Walk()
    sys.setprofile(walk)
    try:
        call()
    finally:
        sys.setprofile(None)
    return walk


def five_numbers() -> None:
    """Decide five probabilities."""
    import argmaxf

    argmaxf.maximize_expected_f([0.9, 0.6, 0.4, 0.2, 0.1])


def ten_million_numbers() -> None:
    """Decide ten million probabilities."""
    import argmaxf

    argmaxf.maximize_expected_f(np.random.default_rng(0).beta(0.2, 3.0, 10_000_000))


def auto_fit() -> None:
    """Fit AutoFClassifier on a logistic regression."""
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression

    import argmaxf

    X, y = make_classification(1000, weights=[0.9], random_state=0)
    argmaxf.AutoFClassifier(LogisticRegression()).fit(X, y)


def compare(*options: str) -> None:
    """Run `argmaxf compare` on a table of 400 rows."""
    from argmaxf.commands.app import run

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        path = Path(folder) / "train.csv"
        rng = np.random.default_rng(0)
        x = rng.normal(size=(400, 3))
        y = x[:, 0] + rng.normal(size=400) > 1.5
        np.savetxt(path, np.column_stack([x, y]), delimiter=",", header="a,b,c,y", comments="")
        assert (
            run(["compare", str(path), "--target", "y", *(o.format(folder) for o in options)]) == 0
        )


def compare_with_report() -> None:
    """Run `argmaxf compare --report` on a table of 400 rows."""
    compare("--report", "{}/out.html")


CALLS = {
    call.__name__: call
    for call in (five_numbers, ten_million_numbers, auto_fit, compare, compare_with_report)
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    wanted = list(CALLS) if sys.argv[1:] in ([], ["all"]) else sys.argv[1:]
    print("call: functions / modules / module switches")
    for name in wanted:
        print(f"{name}: {walked(CALLS[name])}")
