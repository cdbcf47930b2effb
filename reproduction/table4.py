"""Table 4: four multilabel data sets, each label's penalty chosen by two-fold cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.model_selection import KFold

from reproduction.datasets import MultilabelData, load_mulan
from reproduction.models import (
    TrainTestScores,
    by_expectation,
    by_threshold,
    f1,
    logistic,
    soft_f,
    targets,
    with_dummy,
)
from reproduction.report import (
    COLOURS,
    Record,
    Report,
    columns,
    draw_printed,
    markdown_table,
    mean_sd,
    paired_difference,
    pretty,
    published,
    rows,
)
from reproduction.run import Cell, Experiment, Outcome, Plan

DATASETS = ("yeast", "medical", "scene", "enron")
PENALTIES = tuple(10.0**e for e in range(4, -4, -1))  # the first of equals is the largest
EMPTY = " (k=0 allowed)"
# Our columns, and the printed column each stands beside.
COLUMNS = {
    "paper-like ML^δ": "ML^δ",
    "paper-like ML^E": "ML^E",
    f"paper-like ML^E{EMPTY}": "ML^E",
    "paper-like F^δ": "F^δ",
    "default ML^δ": "ML^δ",
    "default ML^E": "ML^E",
    f"default ML^E{EMPTY}": "ML^E",
    "bracketed ML^δ": "ML^δ bracketed",
    "bracketed ML^E": "ML^E bracketed",
    f"bracketed ML^E{EMPTY}": "ML^E bracketed",
}


@cache
def _data(name: str, data_dir: str | None) -> MultilabelData:
    return load_mulan(name, data_dir=data_dir)


def run_label(
    dataset: str, label: str, folds: int, soft_folds: int, data_dir: str | None = None
) -> dict[str, Any]:
    """Return F1 on one label's test part, by fold seed and with the penalty that suits the test."""
    data = _data(dataset, data_dir)
    y, y_test = targets(data, label)
    X, X_test = with_dummy(data.X_train), with_dummy(data.X_test)
    models = [logistic(X, y, X_test, penalty=penalty, tol=1e-6) for penalty in PENALTIES]
    softs = [soft_f(X, y, X_test, penalty=penalty / len(y)) for penalty in PENALTIES]
    judged = [_judge(scores, y, y_test) for scores in models]
    soft_judged = [f1(y_test, by_threshold(scores, y)) for scores in softs]
    best = int(np.argmin([_log_loss(scores.test, y_test) for scores in models]))
    runs = []
    for seed in range(folds):
        found = _cross_validate(X, y, seed)
        run = {
            "default": judged[int(np.argmin(found["log-loss"]))],
            "paper-like": {m: judged[int(np.argmax(found[m]))][m] for m in judged[0]},
        }
        if seed < soft_folds:
            run["paper-like"]["F^δ"] = soft_judged[int(np.argmax(_cross_validate_soft(X, y, seed)))]
        runs.append(run)
    counts = {"train": int(y.sum()), "test": int(y_test.sum())}
    return {"runs": runs, "bracketed": judged[best], **counts}


def _judge(scores: TrainTestScores, y: Any, y_test: Any) -> dict[str, float]:
    empty = by_expectation(scores.test, zero_division=1.0)
    return {
        "ML^δ": f1(y_test, by_threshold(scores, y)),
        "ML^E": f1(y_test, by_expectation(scores.test)),
        f"ML^E{EMPTY}": f1(y_test, empty),
    }


def _cross_validate(X: Any, y: Any, seed: int) -> dict[str, Any]:
    """Return held-out log-loss and each method's held-out F1 for every penalty (mean of folds)."""
    found: dict[str, Any] = {}
    for train, held in _folds(len(y), seed):
        for i, penalty in enumerate(PENALTIES):
            scores = logistic(X[train], y[train], X[held], penalty=penalty, tol=1e-6)
            measured = _judge(scores, y[train], y[held])
            measured["log-loss"] = _log_loss(scores.test, y[held])
            for key, value in measured.items():
                found.setdefault(key, np.zeros(len(PENALTIES)))[i] += value / 2.0
    return found


def _cross_validate_soft(X: Any, y: Any, seed: int) -> Any:
    """Return the held-out F1 of F^δ for every penalty; a fold without positives scores 0."""
    found = np.zeros(len(PENALTIES))
    for train, held in _folds(len(y), seed):
        if y[train].any():
            for i, penalty in enumerate(PENALTIES):
                scores = soft_f(X[train], y[train], X[held], penalty=penalty / len(train))
                found[i] += f1(y[held], by_threshold(scores, y[train])) / 2.0
    return found


def _folds(n: int, seed: int) -> list[tuple[Any, Any]]:
    return list(KFold(2, shuffle=True, random_state=seed).split(np.zeros(n)))


def _log_loss(score: Any, y: Any) -> float:
    return float(np.mean(np.logaddexp(0.0, score) - y * score))


def cells(plan: Plan) -> list[Cell]:
    """One cell for each data set and usable label; a quick look takes three labels of each."""
    folds = plan.repeats(full=8, quick=1)
    chosen = []
    for name in DATASETS:
        data = _data(name, plan.data_dir)
        labels = data.usable(1)
        for j in labels[:: max(1, len(labels) // 2)] if plan.quick else labels:
            params = {
                "dataset": name,
                "label": data.labels[j],
                "folds": folds,
                "soft_folds": max(1, folds // 2),
            }
            key = f"{name}-{j:02d}-{folds}"
            chosen.append(Cell(key, run_label, params, cost=folds, data_dir=plan.data_dir))
    return chosen


def report(outcomes: Sequence[Outcome]) -> Report:
    """Compare macro-F1 with the printed table; answer the claims."""
    labels = {
        name: [o.result for o in outcomes if o.cell.params["dataset"] == name] for name in DATASETS
    }
    records = []
    for row in rows("table4"):
        name, at_least = row.split(" ")
        usable = [r for r in labels[name] if min(r["train"], r["test"]) >= int(at_least)]
        if usable:
            records += [_record(row, column, usable) for column in COLUMNS]
    findings: dict[str, Any] = {"labels": {name: len(found) for name, found in labels.items()}}
    findings["fold seeds"] = outcomes[0].cell.params["folds"]
    for kind in ("default", "paper-like"):
        for group in ("all", "rare", "common"):
            chosen = [r for found in labels.values() for r in found if _in_group(r, group)]
            if chosen:
                gain = paired_difference(
                    [_mean(r, f"{kind} ML^E") for r in chosen],
                    [_mean(r, f"{kind} ML^δ") for r in chosen],
                )
                findings[f"{kind}: E-δ on {group} labels"] = gain
                findings[f"{group} labels"] = len(chosen)
    findings |= {f"{r['row']} {r['method']}": r["macro-F1"] for r in records}
    findings["label counts as printed"] = len(records) == len(rows("table4")) * len(
        COLUMNS
    ) and all(r["labels"] == published("table4", r["row"], "labels") for r in records)
    findings["bracketed higher, ours"] = _bracketed_higher(records, "macro-F1")
    findings["bracketed higher, printed"] = _bracketed_higher(records, "paper")
    headline = "ML^E - ML^δ over {} labels: {:+.1f} [{:.1f}, {:.1f}] (default)".format(
        findings["all labels"], *findings["default: E-δ on all labels"]
    )
    return Report(headline, _text(records, findings), records, findings, lambda: _draw(records))


def _in_group(result: Any, group: str) -> bool:
    fewest = min(result["train"], result["test"])
    return group == "all" or (fewest < 10) == (group == "rare")


def _values(result: Any, column: str) -> list[float]:
    """Return a label's F1 by fold seed (one value where no folds are involved)."""
    kind, _, method = column.partition(" ")
    if kind == "bracketed":
        return [result["bracketed"][method]]
    return [run[kind][method] for run in result["runs"] if method in run[kind]]


def _mean(result: Any, column: str) -> float:
    return float(np.mean(_values(result, column)))


def _record(row: str, column: str, usable: Sequence[Any]) -> dict[str, Any]:
    macro = np.mean([_values(r, column) for r in usable], axis=0)
    mean, sd = mean_sd(macro.tolist())
    paper = published("table4", row, COLUMNS[column])
    return {
        "row": row,
        "labels": len(usable),
        "method": column,
        "macro-F1": mean,
        "sd over folds": sd,
        "paper": paper,
        "difference": mean - paper,
    }


def _bracketed_higher(records: Sequence[Record], key: str) -> tuple[int, int]:
    """Count the pairs where choosing the penalty by the test data gave the higher score."""
    by_cell = {(r["row"], r["method"]): r[key] for r in records}
    pairs = [
        (by_cell[row, f"bracketed {m}"], by_cell[row, f"paper-like {m}"])
        for row in dict.fromkeys(r["row"] for r in records)
        for m in ("ML^δ", "ML^E")
    ]
    return sum(a > b for a, b in pairs), len(pairs)


def _text(records: Sequence[Record], findings: Any) -> str:
    seeds = findings["fold seeds"]
    gains = "; ".join(
        "{} {:+.1f} [{:.1f}, {:.1f}]".format(name, *findings[name])
        for name in findings
        if "E-δ on" in name
    )
    higher, pairs = findings["bracketed higher, ours"]
    printed, _ = findings["bracketed higher, printed"]
    part = "A look at some labels only, not comparable with the printed columns. "
    return (
        _table(records, ("paper-like", "default"))
        + "\n\n"
        + ("" if findings["label counts as printed"] else part)
        + f"Macro-F1 in %, means over {seeds} fold seeds (F^δ {max(1, seeds // 2)}).\n\n"
        + _table(records, ("bracketed",))
        + "\n\nThe bracketed scores: for each label the penalty with the least log-loss on the "
        f"test data.\n\nML^E - ML^δ with 95 % bootstrap intervals over labels: {gains}.\n\n"
        f"A bracketed score is higher than its counterpart in {printed} of {pairs} printed pairs "
        f"and in {higher} of {pairs} of ours (paper-like).\n\nWhether k = 0 is allowed decides the "
        "rows with the rarest labels, above all of medical. Not explained: the printed F^δ of "
        "enron at C = 1 is lower than anything tried gives."
    )


def _table(records: Sequence[Record], kinds: Sequence[str]) -> str:
    """Return the printed columns, each followed by ours of these kinds."""
    by_cell = {(r["row"], r["method"]): r for r in records}
    ours = [column for column in COLUMNS if column.split(" ")[0] in kinds]
    header, lines = ["data, C", "labels"], []
    # in the paper's order: ML^δ, ML^E, F^δ
    printed = sorted({COLUMNS[column] for column in ours}, key=columns("table4").index)
    for name in printed:
        header += [f"{name}, printed", *(c for c in ours if COLUMNS[c] == name)]
    for row in dict.fromkeys(r["row"] for r in records):
        line = [row, str(by_cell[row, ours[0]]["labels"])]
        for name in printed:
            chosen = [by_cell[row, c] for c in ours if COLUMNS[c] == name]
            line += [f"{chosen[0]['paper']:.2f}", *(f"{r['macro-F1']:.1f}" for r in chosen)]
        lines.append(line)
    return markdown_table(header, lines)


def _draw(records: Sequence[Record]) -> Figure:
    figure = Figure(figsize=(9.5, 4), layout="constrained")
    names = list(dict.fromkeys(r["row"] for r in records))
    for ax, kind in zip(figure.subplots(1, 2, sharey=True), ("paper-like", "default"), strict=True):
        methods = ("ML^δ", "ML^E", "F^δ") if kind == "paper-like" else ("ML^δ", "ML^E")
        for shift, method in zip((-0.25, 0.0, 0.25), methods, strict=False):
            chosen = [r for r in records if r["method"] == f"{kind} {method}"]
            x = np.arange(len(names)) + shift
            style = {"ms": 4, "color": COLOURS[method]}
            mean, sd = ([r[key] for r in chosen] for key in ("macro-F1", "sd over folds"))
            error = 2 * np.array(sd)
            ax.errorbar(x, mean, fmt="o", capsize=2, yerr=error, label=pretty(method), **style)
            draw_printed(ax, x, [r["paper"] for r in chosen], mec=COLOURS[method], ms=4, zorder=1)
        ax.set_xticks(range(len(names)), names, rotation=45, ha="right")
        ax.set_title(f"{kind} choice of the penalty")
        ax.grid(axis="x", visible=False)
        ax.legend()
    figure.axes[0].set_ylabel("macro-F1 (%), ± 2 sd over folds; ◇ printed")
    return figure


EXPERIMENT = Experiment("table4", cells, report)
