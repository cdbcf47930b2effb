"""python -m benchmarks.after_deployment: predicted F under shift, and F from few labels.

On the real sets of the study (`benchmarks/choosing/sets.py`; dependency group `study`). First
table: logistic regression, a reference with labels, and later rows: as before, with another share
of positives (prior shift), or drawn by a feature (covariate shift). Second table: the root mean
squared error of F estimated from few labels, on five larger sets. Third table: the labels after
which 95 % intervals have a given width there.

`--nannyml PYTHON` adds NannyML's CBPE, run by the Python of an environment where it is installed
(it needs Python below 3.13 and old packages). "ratio of expected counts" is the same idea without
its chunks, on isotonic probabilities; "EM and ratio" first moves them to the rate of positives that
expectation maximization finds (Saerens et al. 2002), as methods for prior shift do. "OASIS" is
written from the paper (Marchant & Rubinstein 2017).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf import (
    Monitor,
    estimate_f,
    estimate_rate,
    f_interval,
    maximize_expected_f,
    plan_labels,
    shift_prior,
)
from benchmarks.choosing.sets import _readers, real_sets

SHIFTS = ("none", "prior", "covariate")
LARGE = ("letter", "penbased", "optdigits", "texture", "sylva")
BUDGETS = (50, 100, 200, 400, 800, 1600)
ENOUGH = 0.02  # root mean squared error
WIDTHS = (0.2, 0.1, 0.05)  # of 95 % intervals
CBPE = """
import sys
import nannyml
import pandas as pd
for folder in sys.argv[1:]:
    reference, later = (pd.read_csv(f"{folder}/{name}.csv") for name in ("reference", "later"))
    cbpe = nannyml.CBPE(y_pred_proba="p", y_pred="selected", y_true="y", metrics=["f1"],
                        problem_type="classification_binary", chunk_number=1)
    found = cbpe.fit(reference).estimate(later).filter(period="analysis").to_df()["f1"]
    columns = ["value", "lower_confidence_boundary", "upper_confidence_boundary"]
    found[columns].iloc[:1].to_csv(f"{folder}/found.csv", index=False)
"""  # confidence boundaries are three standard errors away


def f1(y, selected):
    """Return F1, 0 where nothing is positive nor selected."""
    return 2 * np.count_nonzero(y & selected) / max(1, y.sum() + selected.sum())


def ratio(p, selected):
    """Return F as a ratio of expected counts."""
    return 2 * p[selected].sum() / max(p.sum() + selected.sum(), 1e-12)


def shifted(X, y, shift, rng):
    """Return the rows of a test set as they come after a shift."""
    if shift == "none":
        return np.arange(y.size)
    if shift == "prior":
        factor = 3.0 if rng.random() < 0.5 else 1.0 / 3.0
        weight = np.where(y, factor, 1.0)
    else:
        z = StandardScaler().fit_transform(X) @ rng.normal(size=X.shape[1])
        weight = np.exp(np.clip((z - z.mean()) / (z.std() + 1e-12), -3, 3))
    return rng.choice(y.size, y.size, p=weight / weight.sum())


def predictions(of, shift, seed, folder):
    """Return F found; the truth and a prediction with its interval by name; any alarm."""
    rng = np.random.default_rng(seed)
    train, reference, test = np.array_split(rng.permutation(of.y.size), 3)
    y = of.y.astype(bool)
    if min(y[each].sum() for each in (train, reference, test)) < 4:
        return None
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    model.fit(of.X[train], y[train])
    later = test[shifted(of.X[test], y[test], shift, rng)]
    p, before = (model.predict_proba(of.X[rows])[:, 1] for rows in (later, reference))
    isotonic = IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1).fit(before, y[reference])
    best = maximize_expected_f(isotonic.predict(before))
    threshold = float(before[best.selected].min()) if best.k else 1.0
    selected, calibrated = p >= threshold, isotonic.predict(p)
    monitor = Monitor(threshold, before, labels=y[reference])
    period = monitor.update(p)
    rate = float(y[reference].mean())
    now = estimate_rate(calibrated, train_rate=rate).value
    moved = shift_prior(calibrated, train_rate=rate, deploy_rate=min(max(now, 1e-6), 1 - 1e-6))
    none = np.nan, np.nan
    found = {
        "ratio of expected counts": (ratio(calibrated, selected), *none),
        "EM and ratio": (ratio(moved, selected), *none),
    }
    found = {name: (f1(y[later], selected), *each) for name, each in found.items()}
    hit = np.count_nonzero(y[later] & selected)
    truths = {
        "F": f1(y[later], selected),
        "precision": hit / max(1, selected.sum()),
        "recall": hit / max(1, y[later].sum()),
    }
    for name in ("predicted", "predicted_after_shift"):
        for what, truth in truths.items():
            each = getattr(getattr(period, name), what.lower())
            found[f"{name}, {what}"] = (truth, each.value, each.low, each.high)
    if folder is not None:
        for name, rows, score in (("reference", reference, before), ("later", later, p)):
            table = {"p": score, "selected": (score >= threshold).astype(int)}
            table |= {"y": y[rows].astype(int)} if name == "reference" else {}
            pd.DataFrame(table).to_csv(folder / f"{name}.csv", index=False)
    return f1(y[later], selected), found, bool(period.alarms)


def predicted_table(seeds, python, per_family):
    """Print mean error and coverage of predicted F for each shift."""
    results, truths, alarms, folders = defaultdict(list), {}, defaultdict(list), []
    with tempfile.TemporaryDirectory() as root:
        families = set()
        for of in real_sets():
            if per_family and of.family in families:
                continue
            families.add(of.family)
            for shift in SHIFTS:
                for seed in range(seeds):
                    folder = Path(root) / f"{of.name}-{shift}-{seed}" if python else None
                    if folder:
                        folder.mkdir()
                    found = predictions(of, shift, seed, folder)
                    if found is None:
                        continue
                    alarms[shift].append(found[2])
                    for name, each in found[1].items():
                        results[shift, name].append(each)
                    if folder:
                        folders.append(folder)
                        truths[folder] = shift, found[0]
        if python:
            for some in np.array_split(np.array(folders), -(-len(folders) // 100)):
                command = [python, "-W", "ignore", "-c", CBPE, *map(str, some)]
                quiet = {**os.environ, "NML_DISABLE_USAGE_LOGGING": "1"}  # it reports its use
                subprocess.run(command, check=True, env=quiet)
            for folder in folders:
                shift, truth = truths[folder]
                each = pd.read_csv(folder / "found.csv").to_numpy()[0]
                results[shift, "NannyML CBPE"].append((truth, *each))
    print(f"{len(families)} sets, {len(results['none', 'predicted, F'])} cases for each shift\n")
    print_predicted(results, alarms)


def print_predicted(results, alarms):
    """Print a row for each method, and how often there was an alarm."""
    print("| mean absolute error, bias in points; coverage | " + " | ".join(SHIFTS) + " |")
    print("| --- |" + " ---: |" * len(SHIFTS))
    for name in dict.fromkeys(name for _, name in results):
        cells = []
        for shift in SHIFTS:
            truth, value, low, high = np.array(results[shift, name]).T
            error = 100 * (value - truth)
            text = f"{np.abs(error).mean():.1f}, {error.mean():+.1f}"
            covered = np.mean((low - 1e-12 <= truth) & (truth <= high + 1e-12))
            cells.append(text if np.isnan(low).all() else f"{text}; {covered:.1%}")
        print(f"| {name} | " + " | ".join(cells) + " |")
    print("| alarms | " + " | ".join(f"{np.mean(alarms[shift]):.1%}" for shift in SHIFTS) + " |")


def stratified(y, p, selected, budget, rng):
    """Estimate F from as many selected rows as others, each weighted by its stratum."""
    tp, positives = 0.0, 0.0
    for side in (True, False):
        rows = np.flatnonzero(selected == side)
        drawn = rng.choice(rows, min(rows.size, max(1, budget // 2)), replace=False)
        share = y[drawn].mean() if drawn.size else 0.0
        positives += rows.size * share
        tp += rows.size * share if side else 0.0
    return 2 * tp / max(positives + selected.sum(), 1e-12)


def oasis(y, p, selected, budget, rng, strata=30, greed=1e-3):
    """Estimate F by adaptive importance sampling; `budget` counts rows that are labelled once."""
    edges = np.quantile(np.sqrt(p), np.linspace(0, 1, strata + 1)[1:-1])
    which = np.searchsorted(np.unique(edges), np.sqrt(p))
    size = np.bincount(which).astype(float)
    kept = np.flatnonzero(size)
    which = np.searchsorted(kept, which)
    size, guess = size[kept], np.bincount(which, p)[kept] / size[kept]
    chosen = np.bincount(which, selected)[: size.size] / size
    a, b = 2 * guess + 1e-3, 2 * (1 - guess) + 1e-3  # the prior weighs as much as two labels
    members = [np.flatnonzero(which == i) for i in range(size.size)]
    f, top, bottom, seen = ratio(p, selected), 0.0, 0.0, set()
    for _ in range(20 * budget):
        rate = a / (a + b)
        inside = np.sqrt(rate * (1 - f) ** 2 * 1.0 + (1 - rate) * (f / 2) ** 2)
        best = size * (chosen * inside + (1 - chosen) * (f / 2) * np.sqrt(rate))
        share = size / size.sum()
        q = greed * share + (1 - greed) * best / max(best.sum(), 1e-300)
        i = rng.choice(size.size, p=q / q.sum())
        row = members[i][rng.integers(members[i].size)]
        seen.add(int(row))
        weight = share[i] / q[i]
        top += weight * (y[row] and selected[row])
        bottom += weight * 0.5 * (int(y[row]) + int(selected[row]))
        a[i], b[i] = a[i] + y[row], b[i] + (not y[row])
        if bottom > 0.0:
            f = top / bottom
        if len(seen) >= min(budget, y.size):
            break
    return f


def uniform(y, p, selected, budget, rng):
    """Estimate F by that of rows drawn uniformly."""
    rows = rng.choice(y.size, min(budget, y.size), replace=False)
    return f1(y[rows], selected[rows])


def planned(y, p, selected, budget, rng):
    """Estimate F by a plan."""
    plan = plan_labels(p, selected, budget, random_state=int(rng.integers(2**31)))
    return estimate_f(y[plan.indices], plan).value


def uniform_interval(y, p, selected, budget, rng):
    """Return the interval of F of rows drawn uniformly."""
    rows = rng.choice(y.size, budget, replace=False)
    found = f_interval(y[rows], selected[rows])
    return found.low, found.high


def stratified_interval(y, p, selected, budget, rng):
    """Draw the rate of positives of selected rows and of others from their posteriors."""
    positives = {}
    for side in (True, False):
        rows = np.flatnonzero(selected == side)
        drawn = rng.choice(rows, min(rows.size, budget // 2), replace=False)
        hits = np.count_nonzero(y[drawn])
        rate = rng.beta(0.5 + hits, 0.5 + drawn.size - hits, 4000)
        positives[side] = hits + rng.binomial(rows.size - drawn.size, rate)
    f = 2 * positives[True] / (positives[True] + positives[False] + selected.sum())
    return np.quantile(f, [0.025, 0.975])


def planned_interval(y, p, selected, budget, rng):
    """Return the interval of a plan."""
    plan = plan_labels(p, selected, budget, random_state=int(rng.integers(2**31)))
    found = estimate_f(y[plan.indices], plan)
    return found.low, found.high


def large_sets(seeds):
    """Give the larger sets: name and rate, and for each split F, labels, scores, selected rows."""
    for name in LARGE:
        X, y = _readers()[name]()
        splits = []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            order = rng.permutation(y.size)
            train, rest = order[: y.size // 4], order[y.size // 4 :]
            model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
            p = model.fit(X[train], y[train]).predict_proba(X[rest])[:, 1]
            selected = maximize_expected_f(p).selected
            truth = y[rest].astype(bool)
            splits.append((f1(truth, selected), truth, p, selected, rng))
        yield f"{name}, {y.mean():.1%}, {splits[-1][0]:.2f}", splits


def widths_table(seeds):
    """Print the labels after which the mean width is small, and how often F was inside."""
    methods = {
        "uniform": uniform_interval,
        "stratified": stratified_interval,
        "plan_labels": planned_interval,
    }
    head = " | ".join(f"width {width:g}" for width in WIDTHS)
    print(f"| set, positives, F1 | method | {head} | coverage, all budgets |")
    print("| --- | --- |" + " ---: |" * (len(WIDTHS) + 1))
    together = defaultdict(list)
    for about, splits in large_sets(seeds):
        for method, interval in methods.items():
            widths, held = [], []
            for budget in BUDGETS:
                ends = [(f, *interval(*each, budget, rng)) for f, *each, rng in splits]
                f, low, high = np.array(ends).T
                widths.append(np.mean(high - low))
                held.append(np.mean((low - 1e-12 <= f) & (f <= high + 1e-12)))
            cells = [fewest(widths, width) for width in WIDTHS]
            together[method] += held
            print(f"| {about} | {method} | {' | '.join(cells)} | {np.mean(held):.1%} |", flush=True)
    print({method: f"{np.mean(held):.1%}" for method, held in together.items()})


def fewest(errors, enough):
    """Return the budget from which on errors are small enough."""
    above = [i for i, each in enumerate(errors) if each > enough]
    budgets = BUDGETS[above[-1] + 1 if above else 0 :]
    return str(budgets[0]) if budgets else f"> {BUDGETS[-1]}"


def labels_table(seeds):
    """Print the error of F from few labels, and the labels for a small one."""
    methods = {"uniform": uniform, "stratified": stratified, "OASIS": oasis, "plan_labels": planned}
    print(
        "| set, positives, F1 | method | " + " | ".join(map(str, BUDGETS)) + " | labels for .02 |"
    )
    print("| --- | --- |" + " ---: |" * (len(BUDGETS) + 1))
    for about, splits in large_sets(seeds):
        errors = defaultdict(list)
        for truth, y, p, selected, rng in splits:
            for budget in BUDGETS:
                for method, estimate in methods.items():
                    errors[method, budget].append(estimate(y, p, selected, budget, rng) - truth)
        for method in methods:
            rmse = [float(np.sqrt(np.mean(np.square(errors[method, b])))) for b in BUDGETS]
            cells = " | ".join(f"{e:.3f}" for e in rmse)
            print(f"| {about} | {method} | {cells} | {fewest(rmse, ENOUGH)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.after_deployment", description=__doc__
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--nannyml", help="the Python of an environment with NannyML")
    parser.add_argument("--one-of-family", action="store_true", help="one set of each family")
    parser.add_argument("--only", choices=("predicted", "labels", "widths"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.only in (None, "predicted"):
        predicted_table(options.seeds, options.nannyml, options.one_of_family)
        print()
    if options.only in (None, "labels"):
        labels_table(options.seeds)
        print()
    if options.only in (None, "widths"):
        widths_table(options.seeds)


if __name__ == "__main__":
    main()
