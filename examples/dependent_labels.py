"""python -m examples.dependent_labels [--out FILE]: is dependence worth modelling on real data?

Instance-wise F1 of logistic regression on the paper's four multilabel data sets, decided for
independent and for dependent labels, with paired bootstrap intervals over the test rows. The table
is written between the two marks in docs/background/dependent-labels.md. About a minute.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from argmaxf import ExpectedFClassifier, JointFClassifier
from argmaxf.measures import FBeta
from reproduction.datasets import load_mulan

NAMES = ("yeast", "scene", "medical", "enron")
PAGE = Path(__file__).parent.parent / "docs" / "background" / "dependent-labels.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
C = [
    0.001,
    0.01,
    0.1,
    1.0,
    10.0,
    100.0,
]  # chosen by two-fold cross-validation of the measure itself
SEED = 0
RESAMPLES = 10_000


class Outcome(NamedTuple):
    """F1 of every test row under one method, and the regularization it was given."""

    f: np.ndarray
    c: float
    expected: float  # what the model expected
    gain: float  # and what it expected dependence to be worth


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args()
    with threadpool_limits(1):  # the matrices are too small to share out
        lines = [line for name in NAMES for line in study(name)]
    write(options.out, "\n".join([*HEAD, *lines]))
    return 0


HEAD = [
    "| data, labels | decided for | instance-wise F1, % | dependent - independent | C |",
    "| --- | --- | ---: | ---: | ---: |",
]


def study(name: str) -> list[str]:
    """Return the lines of the table for one data set."""
    data = load_mulan(name)
    # Without calibration, which the joint models do not have either: dependence is the difference.
    alone = ExpectedFClassifier(model(), average="samples", calibration=None)
    at_half, independent = fit(alone, data)
    dependent = fit(JointFClassifier(model()), data)[1]
    lines = [
        f"| {name}, {data.Y_test.shape[1]} | each label at 0.5 | {interval(at_half.f)} | | "
        f"{at_half.c:g} |",
        f"| | independent labels | {interval(independent.f)} | | {independent.c:g} |",
        f"| | dependent labels | {interval(dependent.f)} | "
        f"{interval(dependent.f - independent.f, '+')} (expected {100 * dependent.gain:+.1f}) | "
        f"{dependent.c:g} |",
    ]
    print("\n".join(lines), file=sys.stderr, flush=True)
    return lines


def model() -> LogisticRegression:
    return LogisticRegression(tol=1e-3, max_iter=500)


def fit(method, data) -> tuple[Outcome, Outcome]:
    """Fit one method, C chosen on the training rows; decide the test rows at 0.5 and by it."""
    scaler = "passthrough" if sparse.issparse(data.X_train) else StandardScaler()
    grid = {f"{type(method).__name__.lower()}__estimator__C": C}
    score = make_scorer(f1_score, average="samples", zero_division=0.0)
    folds = KFold(2, shuffle=True, random_state=SEED)
    search = GridSearchCV(make_pipeline(scaler, method), grid, scoring=score, cv=folds)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "labels with")
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        search.fit(data.X_train, data.Y_train)
    chosen = search.best_estimator_
    X, c = chosen[:-1].transform(data.X_test), search.best_params_[next(iter(grid))]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the F predicted rests on")  # some labels are rare
        decision = chosen[-1].decide(X)
    gain = float(np.mean(getattr(decision, "gain", 0.0)))
    expected = float(np.mean(decision.expected))
    plain = chosen[-1].predict_proba(X) > 0.5
    return (
        Outcome(row_f(data.Y_test, plain), c, np.nan, np.nan),
        Outcome(row_f(data.Y_test, decision.selected), c, expected, gain),
    )


def row_f(truth: np.ndarray, selected: np.ndarray) -> np.ndarray:
    """F1 of every row."""
    hits = (truth * selected).sum(axis=1)
    return FBeta().value(hits, selected.sum(axis=1), truth.sum(axis=1))


def interval(values: np.ndarray, sign: str = "") -> str:
    """The mean in percent with its 95 % bootstrap interval over rows; pairs stay together."""
    rng = np.random.default_rng(SEED)
    rows = rng.integers(0, len(values), (RESAMPLES, len(values)))
    low, high = np.quantile(values[rows].mean(axis=1), [0.025, 0.975])
    return f"{100 * values.mean():{sign}.1f} [{100 * low:{sign}.1f}, {100 * high:{sign}.1f}]"


def write(page: Path, table: str) -> None:
    """Put the table between the two marks of the page, or into a new file."""
    text = page.read_text(encoding="utf-8") if page.exists() else f"{BEGIN}\n{END}\n"
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
