"""Table 3: Reuters-21578, naive Bayes and logistic regression, topics from common to rare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.naive_bayes import MultinomialNB

from reproduction.datasets import MultilabelData, load_reuters
from reproduction.models import (
    TrainTestScores,
    by_expectation,
    by_threshold,
    f1,
    logistic,
    soft_f,
    targets,
    timed,
    with_dummy,
)
from reproduction.report import (
    COLOURS,
    Difference,
    Record,
    Report,
    columns,
    markdown_table,
    paired_difference,
    pretty,
    published,
    rows,
    topics,
)
from reproduction.run import Cell, Experiment, Outcome, Plan

# A small list of English function words; the paper's own is not known.
STOP_WORDS = (
    *("a", "about", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be", "been"),
    *("but", "by", "can", "could", "for", "from", "had", "has", "have", "he", "her", "his", "if"),
    *("in", "into", "is", "it", "its", "may", "more", "no", "not", "of", "on", "one", "or"),
    *("other", "out", "she", "so", "some", "than", "that", "the", "their", "them", "there"),
    *("they", "this", "to", "two", "up", "was", "we", "were", "what", "when", "which", "who"),
    *("will", "with", "would", "you"),
)


@dataclass(frozen=True)
class Setup:
    """What is read of a document, and how strong the penalty of logistic regression is."""

    options: dict[str, Any]
    penalty: float


SETUPS = {
    "default": Setup({"text": "title and body", "token_pattern": r"[a-z]+"}, penalty=1.0),
    "paper-like": Setup(
        {
            "text": "body",
            "token_pattern": r"[a-z][a-z'\-.,/]+[a-z]",
            "stop_words": STOP_WORDS,
        },
        penalty=0.3,
    ),
}
LR = ("LR ML^.5", "LR ML^δ", "LR F^δ", "LR ML^E")
EMPTY = " (k=0 allowed)"


@cache
def _data(setup: str, data_dir: str | None) -> tuple[MultilabelData, Any, Any]:
    """Return the documents of a setup, and both parts with the dummy attribute."""
    data = load_reuters(**SETUPS[setup].options, data_dir=data_dir)
    return data, with_dummy(data.X_train), with_dummy(data.X_test)


def run_topic(setup: str, topic: str, data_dir: str | None = None) -> dict[str, Any]:
    """Return F1 of every method on one topic, and how many positives there are."""
    data, X, X_test = _data(setup, data_dir)
    y, y_test = targets(data, topic)
    penalty = SETUPS[setup].penalty
    found = _judge("NB", naive_bayes(data.X_train, y, data.X_test), y, y_test)
    found |= _judge("LR", logistic(X, y, X_test, penalty=penalty, tol=1e-7), y, y_test)
    found["LR F^δ"] = f1(y_test, by_threshold(soft_f(X, y, X_test, penalty=1.0 / len(y)), y))
    return found | {"train": int(y.sum()), "test": int(y_test.sum())}


def naive_bayes(X: Any, y: Any, X_test: Any) -> TrainTestScores:
    """Fit multinomial naive Bayes, one count added to every class and word."""
    priors = (np.bincount(y, minlength=2) + 1.0) / (len(y) + 2.0)
    with timed("fit"):
        model = MultinomialNB(alpha=1.0, class_prior=priors).fit(X, y)
    train, test = (model.predict_joint_log_proba(part) for part in (X, X_test))
    return TrainTestScores(train[:, 1] - train[:, 0], test[:, 1] - test[:, 0])


def cells(plan: Plan) -> list[Cell]:
    """One cell for each setup and usable topic; a quick look takes six."""
    data, _, _ = _data("paper-like", plan.data_dir)  # the topics are those of either setup
    topics = [data.labels[j] for j in data.usable(1)]
    return [
        Cell(
            f"{setup}-{topic}",
            run_topic,
            {"setup": setup, "topic": topic},
            cost=1.0,
            data_dir=plan.data_dir,
        )
        for setup in SETUPS
        for topic in (topics[::15] if plan.quick else topics)
    ]


def report(outcomes: Sequence[Outcome]) -> Report:
    """Compare macro-F1 with the printed table; answer the claim about rare topics."""
    topics = {
        setup: [o.result for o in outcomes if o.cell.params["setup"] == setup] for setup in SETUPS
    }
    records = [
        _record(setup, at_least, column, topics[setup])
        for setup in SETUPS
        for at_least in rows("table3")
        for column in (*columns("table3"), *_extra())
        if _usable(topics[setup], int(at_least))
    ]
    findings: dict[str, Any] = {"topics": len(topics["default"])}
    for setup, found in topics.items():
        errors = [abs(r["difference"]) for r in records if r["setup"] == setup and r["paper"]]
        findings[f"{setup}: mean absolute difference"] = float(np.mean(errors))
        for name, chosen, base in _comparisons(found):
            gain = paired_difference([r[chosen] for r in found], [r[base] for r in found])
            findings[f"{setup}: {name}"] = gain
        rare = [r for r in found if _fewest(r) < 10]
        common = [r for r in found if _fewest(r) >= 10]
        for name, part in (("rare", rare), ("common", common)):
            findings[f"{setup}: LR E-δ on {name} topics"] = _gain(part)
        findings[f"{setup}: rare topics"] = len(rare)
        findings |= {
            f"{setup}: {r['method']} C={r['C']}": r["macro-F1"]
            for r in records
            if r["setup"] == setup
        }
    gains = ", ".join(_signed(findings[f"{setup}: LR E-δ"]) + f" ({setup})" for setup in SETUPS)
    headline = f"LR over {findings['topics']} topics, ML^E - ML^δ: {gains}"
    return Report(headline, _text(records, findings), records, findings, lambda: _draw(topics))


def _judge(name: str, scores: TrainTestScores, y: Any, y_test: Any) -> dict[str, float]:
    empty = by_expectation(scores.test, zero_division=1.0)
    return {
        f"{name} ML^.5": f1(y_test, scores.test >= 0.0),
        f"{name} ML^δ": f1(y_test, by_threshold(scores, y)),
        f"{name} ML^E": f1(y_test, by_expectation(scores.test)),
        f"{name} ML^E{EMPTY}": f1(y_test, empty),
    }


def _extra() -> tuple[str, ...]:
    return (f"NB ML^E{EMPTY}", f"LR ML^E{EMPTY}")


def _comparisons(found: Sequence[Any]) -> list[tuple[str, str, str]]:
    return [
        ("LR E-δ", "LR ML^E", "LR ML^δ"),
        ("LR E-δ, k=0 allowed", f"LR ML^E{EMPTY}", "LR ML^δ"),
        ("NB E-.5", "NB ML^E", "NB ML^.5"),
        ("NB E-δ", "NB ML^E", "NB ML^δ"),
    ]


def _gain(found: Sequence[Any]) -> Difference:
    return paired_difference([r["LR ML^E"] for r in found], [r["LR ML^δ"] for r in found])


def _fewest(result: Any) -> int:
    return min(int(result["train"]), int(result["test"]))


def _usable(results: Sequence[Any], at_least: int) -> list[Any]:
    return [r for r in results if _fewest(r) >= at_least]


def _record(setup: str, at_least: str, column: str, results: Sequence[Any]) -> dict[str, Any]:
    chosen = _usable(results, int(at_least))
    macro = float(np.mean([r[column] for r in chosen]))
    paper = published("table3", at_least, column) if column in columns("table3") else None
    return {
        "setup": setup,
        "C": int(at_least),
        "topics": len(chosen),
        "method": column,
        "macro-F1": macro,
        "paper": paper,
        "difference": None if paper is None else macro - paper,
    }


def _text(records: Sequence[Record], findings: Any) -> str:
    header = ["C", "setup", *columns("table3"), f"LR ML^E{EMPTY}"]
    lines = []
    for at_least in rows("table3"):
        printed = [f"{published('table3', at_least, c):.1f}" for c in columns("table3")]
        lines.append([at_least, "printed", *printed, ""])
        for setup in SETUPS:
            by_method = {
                r["method"]: f"{r['macro-F1']:.1f}"
                for r in records
                if r["setup"] == setup and r["C"] == int(at_least)
            }
            if by_method:
                lines.append([at_least, setup, *(by_method[c] for c in header[2:])])
    notes = [
        "{}: {:.2f} points mean absolute difference from the printed table; LR, ML^E - ML^δ over "
        "all topics {}; on the {} topics with fewer than 10 positives {}, on the others {}; with "
        "k = 0 allowed over all topics {}.".format(
            setup,
            findings[f"{setup}: mean absolute difference"],
            _signed(findings[f"{setup}: LR E-δ"]),
            findings[f"{setup}: rare topics"],
            _signed(findings[f"{setup}: LR E-δ on rare topics"]),
            _signed(findings[f"{setup}: LR E-δ on common topics"]),
            _signed(findings[f"{setup}: LR E-δ, k=0 allowed"]),
        )
        for setup in SETUPS
    ]
    few = bool(findings["topics"] < topics())
    warning = f"A look at {findings['topics']} topics only, not comparable with the printed rows. "
    return (
        markdown_table(header, lines) + "\n\nMacro-F1 in %. " + few * warning + "\n\n".join(notes)
    )


def _signed(interval: Sequence[float]) -> str:
    value, low, high = interval
    return f"{value:+.1f} [{low:.1f}, {high:.1f}]"


def _draw(topics: dict[str, list[Any]]) -> Figure:
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for ax, setup in zip(figure.subplots(1, 2, sharey=True), SETUPS, strict=True):
        found = sorted(topics[setup], key=_fewest)
        x = np.array([_fewest(r) for r in found])
        edges = [1, 2, 3, 5, 10, 20, 50, 5000]
        groups = [(x >= a) & (x < b) for a, b in pairwise(edges)]
        for method in LR:
            values = np.array([r[method] for r in found])
            heights = [values[g].mean() if g.any() else np.nan for g in groups]
            name = method.removeprefix("LR ")
            ax.plot(
                range(len(groups)), heights, "o-", ms=4, color=COLOURS[name], label=pretty(name)
            )
        names = [f"{a}" if b == a + 1 else f"{a}-{b - 1}" for a, b in pairwise(edges[:-1])]
        ticks = [f"{n}\n({g.sum()})" for n, g in zip([*names, "50+"], groups, strict=True)]
        ax.set_xticks(range(len(groups)), ticks)
        ax.set_xlabel("positives in the smaller part (number of topics)")
        ax.set_title(f"{setup} setup")
    figure.axes[0].set_ylabel("mean F1 (%), logistic regression")
    figure.axes[0].legend()
    return figure


EXPERIMENT = Experiment("table3", cells, report)
