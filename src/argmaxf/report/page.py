"""The comparison as one self-contained HTML page."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib import metadata
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from argmaxf._base.arrays import Bools, Floats
from argmaxf.comparison.methods import METHODS
from argmaxf.comparison.result import Comparison, Evidence
from argmaxf.constraints import Constraints
from argmaxf.displays import (
    BetaDisplay,
    EmpiricalFDisplay,
    ExpectedFDisplay,
    MethodComparisonDisplay,
    PriorSensitivityDisplay,
    ReliabilityDisplay,
)
from argmaxf.empirical.guarantees import GuaranteeError
from argmaxf.measures import FBeta
from argmaxf.report.code import SavedModel, code
from argmaxf.report.live import live_numbers, live_scores
from argmaxf.report.pictures import svg

MOST_LABELS = 6  # of many labels the rarest are shown: they are the hard ones
VERSIONS = ("argmaxf", "numpy", "scipy", "scikit-learn", "polars", "matplotlib")


def render(
    comparison: Comparison,
    *,
    command: Sequence[str],
    made_with: str = "",
    saved: SavedModel | None = None,
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
    live = moved(comparison)
    has_beta = isinstance(comparison.measure, FBeta)
    numbers = [live.numbers(i) for i in shown] if has_beta else []
    return environment.get_template("report.html.j2").render(
        comparison=comparison,
        drawn_by=drawn_by(comparison),
        f=comparison.measure.title,
        methods_picture=_methods(comparison),
        labels=[
            {"name": comparison.labels[i], "pictures": _pictures(comparison, i)} for i in shown
        ],
        hidden=len(comparison.labels) - len(shown),
        numbers=numbers,
        live=live,
        code=code(comparison, saved),
        command=shlex.join(command),
        made_with=made_with,
        versions={"Python": platform.python_version(), **_versions()},
    )


@dataclass(frozen=True)
class Moved:
    """What the sliders of the page move: the scores of the method to use, and what to say of it."""

    scores: Floats
    truth: Bools
    beta: float
    are_proba: bool
    explains: str

    def numbers(self, label: int) -> dict[str, Any]:
        """Return the library's answers for one label."""
        answers = live_numbers if self.are_proba else live_scores
        return answers(self.scores[:, label], self.truth[:, label], self.beta)


def moved(comparison: Comparison) -> Moved:
    """Return what the sliders move: the scores that the method to use decides by."""
    rows, proba = evidence(comparison)
    method = comparison.method.method
    name = method.name
    if method.rests_on == "scores":
        scores, by = proba, "the classifier's probabilities, which this method cuts"
    else:
        scores, by = rows.scores[name], f"the probabilities of {name}"
    if method.rests_on == "rows":
        explains = (
            f"For each β the cut of {name} with the highest F on these rows is shown; chosen on "
            "the rows it is shown on, it flatters a little."
        )
    else:
        explains = (
            f"For each β the set with the highest expected F by {by} is shown, all rows decided "
            "together."
        )
    if promised(comparison):
        explains += " What was promised is left aside here: these are the best sets without it."
    on_proba = method.rests_on != "rows"
    return Moved(scores, rows.truth, comparison.beta, on_proba, explains)


def promised(comparison: Comparison) -> dict[str, float]:
    """Return what the method to use promises, and how surely; nothing where it does not."""
    model = comparison.estimator
    sure = getattr(model, "confidence_level", None)
    names = [field.name for field in fields(Constraints)]
    limits = {name: getattr(model, name, None) for name in names}
    return {k: v for k, v in {**limits, "confidence_level": sure}.items() if v is not None}


def _expected_by_size(comparison: Comparison, y: Any, p: Any) -> tuple[str, ExpectedFDisplay]:
    """Return what is expected of each number of rows, and what was found of the best."""
    measure = comparison.measure
    display = ExpectedFDisplay.of(p, measure=measure)
    chosen = np.asarray(display.decision.selected)
    found = measure.quotient(np.sum(y[chosen]), chosen.sum(), y.sum(), y.size)
    return (
        f"Expected {measure.title} against how many rows are selected. Found on the labels, for "
        f"the best: {float(found):.3f}.",
        display,
    )


def _found_by_threshold(comparison: Comparison, y: Any, p: Any) -> tuple[str, EmpiricalFDisplay]:
    """Return what each threshold finds, with what can be promised of it where that was asked."""
    chance, measure = promised(comparison), comparison.measure
    caption = f"Precision, recall and {measure.title} found at each threshold"
    try:
        display = EmpiricalFDisplay.of(y, p, measure=measure, **chance)
    except GuaranteeError:
        caption += "; none of them can be promised what was asked"
        display = EmpiricalFDisplay.of(y, p, measure=measure)
    return f"{caption}.", display


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
        measure=comparison.measure,
    )
    f = comparison.measure.title
    return svg(display, f"{f} of each method with its interval", wide=True)


def drawn_by(comparison: Comparison) -> str:
    """Return the method whose probabilities are drawn: the one to use, or expected F."""
    chosen = comparison.method.method
    on_chances = chosen.rests_on in ("probabilities", "others")
    return chosen.name if on_chances else METHODS["expected"].name


def _pictures(comparison: Comparison, label: int) -> list[dict[str, Any]]:
    """Return pictures of the decision by calibrated probabilities, where there are any."""
    rows, own = evidence(comparison)
    calibrated = rows.scores.get(drawn_by(comparison), own)
    p, y, raw = calibrated[:, label], rows.truth[:, label].astype(int), own[:, label]
    measure = comparison.measure
    displays: list[tuple[str, Any]] = [
        _expected_by_size(comparison, y, p),
        _found_by_threshold(comparison, y, p),
        (
            "The classifier's own probabilities against what was found.",
            ReliabilityDisplay.of(y, raw, measure=measure),
        ),
    ]
    if isinstance(measure, FBeta):
        displays.append(("What each β would choose.", BetaDisplay.of(p)))
    if 0 < p.mean() < 1:
        prior = PriorSensitivityDisplay.of(p, measure=measure)
        displays.append(("What a wrong positive rate would cost.", prior))
    return [
        {"caption": caption, "svg": svg(display, f"{caption} Label {label + 1}.")}
        for caption, display in displays
    ]


def _versions() -> dict[str, str]:
    return {name: metadata.version(name) for name in VERSIONS}
