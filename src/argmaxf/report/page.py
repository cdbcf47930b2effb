"""The comparison as one self-contained HTML page."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from argmaxf.comparison.result import Comparison, Evidence
from argmaxf.comparison.trial import Floats
from argmaxf.displays import (
    BetaDisplay,
    EmpiricalFDisplay,
    ExpectedFDisplay,
    MethodComparisonDisplay,
    PriorSensitivityDisplay,
    ReliabilityDisplay,
)
from argmaxf.metric import name_of_f
from argmaxf.report.code import code
from argmaxf.report.live import live_numbers
from argmaxf.report.pictures import svg

MOST_LABELS = 6  # of many labels the rarest are shown: they are the hard ones
VERSIONS = ("argmaxf", "numpy", "scipy", "scikit-learn", "polars", "matplotlib")


def render(
    comparison: Comparison,
    *,
    command: Sequence[str],
    made_with: str = "",
    saved: str | None = None,
) -> str:
    """Return the page: the decision, the comparison, pictures, live numbers, how to repeat it."""
    environment = Environment(
        loader=PackageLoader("argmaxf.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = rarest(comparison)
    rows, proba = evidence(comparison)
    numbers = [live_numbers(proba[:, i], rows.truth[:, i], comparison.beta) for i in shown]
    return environment.get_template("report.html.j2").render(
        comparison=comparison,
        f=name_of_f(comparison.beta),
        methods_picture=_methods(comparison),
        labels=[
            {"name": comparison.labels[i], "pictures": _pictures(comparison, i)} for i in shown
        ],
        hidden=len(comparison.labels) - len(shown),
        numbers=numbers,
        code=code(comparison, saved),
        command=shlex.join(command),
        made_with=made_with,
        versions={"Python": platform.python_version(), **_versions()},
    )


def evidence(comparison: Comparison) -> tuple[Evidence, Floats]:
    """Return the rows of a comparison, and the classifier's probabilities for them."""
    rows = comparison.evidence
    if rows is None or rows.proba is None:
        raise ValueError("the page shows rows that were kept, and a classifier's probabilities")
    return rows, rows.proba


def rarest(comparison: Comparison) -> list[int]:
    """Return the labels to show, all or the rarest few, in their own order."""
    order = np.argsort(evidence(comparison)[0].truth.sum(axis=0), kind="stable")[:MOST_LABELS]
    return sorted(order.tolist())


def _methods(comparison: Comparison) -> Any:
    display = MethodComparisonDisplay(
        scores={m.name: m.score for m in comparison.methods},
        differences={m.name: m.difference for m in comparison.methods},
        reference=comparison.chosen,
        beta=comparison.beta,
    )
    f = name_of_f(comparison.beta)
    return svg(display, f"{f} of each method with its interval", wide=True)


def _pictures(comparison: Comparison, label: int) -> list[dict[str, Any]]:
    rows, proba = evidence(comparison)
    p, y = proba[:, label], rows.truth[:, label].astype(int)
    beta = comparison.beta
    f = name_of_f(beta)
    displays: list[tuple[str, Any]] = [
        (f"Expected {f} against how many rows are selected.", ExpectedFDisplay.of(p, beta=beta)),
        (
            f"Precision, recall and {f} found at each threshold.",
            EmpiricalFDisplay.of(y, p, beta=beta),
        ),
        ("Predicted probabilities against what was found.", ReliabilityDisplay.of(y, p, beta=beta)),
        ("What each β would choose.", BetaDisplay.of(p)),
    ]
    if 0 < p.mean() < 1:
        prior = PriorSensitivityDisplay.of(p, beta=beta)
        displays.append(("What a wrong positive rate would cost.", prior))
    return [
        {"caption": caption, "svg": svg(display, f"{caption} Label {label + 1}.")}
        for caption, display in displays
    ]


def _versions() -> dict[str, str]:
    return {name: metadata.version(name) for name in VERSIONS}
