"""The comparison as one self-contained HTML page."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from argmaxf.displays import (
    BetaDisplay,
    EmpiricalFDisplay,
    ExpectedFDisplay,
    MethodComparisonDisplay,
    PriorSensitivityDisplay,
    ReliabilityDisplay,
)
from argmaxf.displays.drawing import name_of_f
from argmaxf.report.comparison import ABOUT, Comparison
from argmaxf.report.live import live_numbers
from argmaxf.report.pictures import svg
from argmaxf.report.words import code, sentence

MOST_LABELS = 6  # of many labels the rarest are shown: they are the hard ones
VERSIONS = ("argmaxf", "numpy", "scipy", "scikit-learn", "polars", "matplotlib")


def render(comparison: Comparison, *, command: Sequence[str], saved: str | None = None) -> str:
    """Return the page: the decision, the comparison, pictures, live numbers, how to repeat it."""
    environment = Environment(
        loader=PackageLoader("argmaxf.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = rarest(comparison)
    numbers = [
        live_numbers(comparison.proba[:, i], comparison.truth[:, i], comparison.options.beta)
        for i in shown
    ]
    return environment.get_template("report.html.j2").render(
        comparison=comparison,
        f=name_of_f(comparison.options.beta),
        about=ABOUT,
        sentence=sentence(comparison),
        methods_picture=_methods(comparison),
        labels=[{"name": comparison.names[i], "pictures": _pictures(comparison, i)} for i in shown],
        hidden=len(comparison.names) - len(shown),
        numbers=numbers,
        code=code(comparison, saved),
        command=shlex.join(command),
        versions={"Python": platform.python_version(), **_versions()},
    )


def rarest(comparison: Comparison) -> list[int]:
    """Return the labels to show, all or the rarest few, in their own order."""
    order = np.argsort(comparison.truth.sum(axis=0), kind="stable")[:MOST_LABELS]
    return sorted(order.tolist())


def _methods(comparison: Comparison) -> Any:
    display = MethodComparisonDisplay(
        scores={m.name: m.score for m in comparison.methods},
        differences={m.name: m.difference for m in comparison.methods},
        reference=comparison.chosen,
        beta=comparison.options.beta,
    )
    f = name_of_f(comparison.options.beta)
    return svg(display, f"{f} of each method with its interval", wide=True)


def _pictures(comparison: Comparison, label: int) -> list[dict[str, Any]]:
    p, y = comparison.proba[:, label], comparison.truth[:, label].astype(int)
    beta = comparison.options.beta
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
