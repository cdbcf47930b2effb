"""Self-contained HTML pages: a comparison, with Python code that uses it, and a monitor."""

from __future__ import annotations

import io
import platform
import re
import shlex
import warnings
from collections.abc import Sequence
from importlib import metadata
from inspect import signature
from itertools import takewhile
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

import argmaxf
from argmaxf._base.arrays import Bools, Floats
from argmaxf.comparison.result import Comparison
from argmaxf.displays.empirical import (
    EmpiricalFDisplay,
    MethodComparisonDisplay,
    ReliabilityDisplay,
)
from argmaxf.displays.expected import BetaDisplay, ExpectedFDisplay, PriorSensitivityDisplay
from argmaxf.displays.monitoring import MonitorDisplay
from argmaxf.empirical.guarantees import GuaranteeError
from argmaxf.empirical.threshold import maximize_empirical_f
from argmaxf.estimators.meta import PlainClassifier
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.expected.values import TopSets, expected_f_curve
from argmaxf.measures import FBeta
from argmaxf.monitoring.monitor import Monitor, Period

MOST_LABELS = 6  # of many labels the rarest are shown: they are the hard ones
VERSIONS = ("argmaxf", "numpy", "scipy", "scikit-learn", "polars", "matplotlib")
BETAS = 49  # from 0.1 to 10, 1 included
THRESHOLDS = 161
SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",  # letters stay letters: crisp, selectable, small
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
}


def render(
    comparison: Comparison,
    *,
    command: Sequence[str],
    made_with: str = "",
    saved: tuple[str, Sequence[str]] | None = None,
) -> str:
    """Return the page: the decision, the comparison, pictures, live numbers, how to repeat it.

    `made_with` names the classifier and how it was evaluated. `saved` is the name of a model file,
    and the types in it that skops does not trust by itself.
    """
    rows = comparison.evidence
    assert rows is not None
    method = comparison.method.method
    scores: Floats = rows.scores.get(method.name, np.full(rows.truth.shape, np.nan))
    if method.wraps and not method.joint and rows.proba is not None:
        scores = rows.proba  # in the order of the scores, on the scale that people know
    shown = sorted(np.argsort(rows.truth.sum(axis=0), kind="stable")[:MOST_LABELS].tolist())
    shown = shown if np.isfinite(scores).all() else []  # a method without scores has no pictures
    betas = isinstance(comparison.measure, FBeta)
    return _page(
        "report.html.j2",
        command,
        comparison=comparison,
        f=comparison.measure.title,
        methods_picture=_methods(comparison),
        labels=[
            {"name": comparison.labels[i], "pictures": _pictures(comparison, scores, i)}
            for i in shown
        ],
        hidden=len(comparison.labels) - len(shown),
        numbers=[
            live_numbers(scores[:, i], rows.truth[:, i], comparison.beta, joint=method.joint)
            for i in shown
            if betas
        ],
        guaranteed=guaranteed(comparison),
        pooled="folds" in comparison.rated_on,
        code=code(comparison),
        saved=saved,
        made_with=made_with,
    )


def render_monitor(monitor: Monitor, periods: Sequence[Period], *, command: Sequence[str]) -> str:
    """Return the page: alarms, pictures, a table of all periods, limits, how to repeat it."""
    f, reference = monitor.measure.title, monitor.reference
    captions = {
        "f": f"Predicted {f} of each period with its interval; diamonds: {f} of labelled rows.",
        "rate": "Rate of positives of each period, if only that rate has changed.",
    }
    displays = {
        shows: MonitorDisplay(periods=periods, reference=reference, shows=shows, measure=f)
        for shows in captions
    }
    return _page(
        "monitoring.html.j2",
        command,
        monitor=monitor,
        reference=reference,
        periods=periods,
        alarmed=[each for each in periods if each.alarms],
        has_labels=any(each.found for each in periods),
        f=f,
        pictures=[
            {"caption": caption, "svg": svg(displays[shows], caption, wide=True)}
            for shows, caption in captions.items()
        ],
    )


def _page(template: str, command: Sequence[str], **content: Any) -> str:
    """Return a page with its content, the command that made it, and the versions it depends on."""
    environment = Environment(
        loader=PackageLoader("argmaxf.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    versions = {"Python": platform.python_version()}
    versions |= {name: metadata.version(name) for name in VERSIONS}
    page = environment.get_template(template).render(
        command=shlex.join(command), versions=versions, **content
    )
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "\ufffd", page)  # a page cannot have these


def guaranteed(comparison: Comparison) -> dict[str, float]:
    """Return the constraints that the method to use guarantees, and their confidence level."""
    model = comparison.estimator
    names = ("min_precision", "min_recall", "confidence_level")
    limits = {name: getattr(model, name, None) for name in names}
    limits |= getattr(model, "constraints", None) or {}
    if isinstance(getattr(model, "max_selected", None), float):
        limits["max_selected_rate"] = model.max_selected
    return {name: limit for name, limit in limits.items() if limit is not None}


def _methods(comparison: Comparison) -> Markup:
    display = MethodComparisonDisplay(
        scores={m.name: m.score for m in comparison.methods},
        differences={m.name: m.difference for m in comparison.methods},
        reference=comparison.chosen,
        measure=comparison.measure,
    )
    f = comparison.measure.title
    return svg(display, f"{f} of each method with its interval", wide=True)


def _pictures(comparison: Comparison, scores: Floats, label: int) -> list[dict[str, Any]]:
    """Return pictures of the method to use, by the scores it decides by.

    Its measured F and the number of rows it selected, which the headline names, are marked.
    """
    rows, measure, name = comparison.evidence, comparison.measure, comparison.chosen
    assert rows is not None
    y, selected, s = rows.truth[:, label], rows.predictions[name][:, label], scores[:, label]
    f, k, joint = measure.title, int(selected.sum()), comparison.method.method.joint
    value = float(measure.value(np.sum(y & selected), k, y.sum(), y.size))
    found: dict[str, Any] = {"title": f"{name}: {k:,} selected, {f} {value:.3f}", "level": value}
    pictures: list[tuple[str, Any, dict[str, Any]]] = []
    if joint:
        by_size = ExpectedFDisplay.from_predictions(s, measure=measure, ax=False)
        pictures.append((f"Expected {f} by the number selected.", by_size, found))
    caption, chance = f"Precision, recall and {f} at each threshold", guaranteed(comparison)
    try:
        by_threshold = EmpiricalFDisplay.from_predictions(y, s, measure=measure, **chance, ax=False)
    except GuaranteeError:
        caption += "; none of them meets the guarantee that was asked for"
        by_threshold = EmpiricalFDisplay.from_predictions(y, s, measure=measure, ax=False)
    pictures.append((f"{caption}.", by_threshold, found))
    if joint or rows.proba is scores:
        held = ReliabilityDisplay.from_predictions(y, s, measure=measure, ax=False)
        title = {"title": f"Probabilities of {name if joint else 'the classifier'}"}
        pictures.append(("Probabilities against the labels.", held, title))
    if joint and isinstance(measure, FBeta):
        pictures.append(
            ("What each β would choose.", BetaDisplay.from_predictions(s, ax=False), {})
        )
    if joint and 0 < s.mean() < 1:
        prior = PriorSensitivityDisplay.from_predictions(s, measure=measure, ax=False)
        pictures.append(("What a wrong positive rate would cost.", prior, {}))
    return [
        {
            "caption": f"{text} Dotted: the {f} measured." if "level" in marks else text,
            "svg": svg(display, f"{text} Label {label + 1}.", **marks),
        }
        for text, display, marks in pictures
    ]


def live_numbers(scores: Floats, truth: Bools, beta: float, *, joint: bool) -> dict[str, Any]:
    """Return the library's answers for one label, ready to be written into the page.

    `decisions` has the best set for each β, `cuts` what each threshold selects: k and the true
    positives found. For a `joint` method the best set is the one with the highest expected F, and
    expected F, precision and recall are there too; for others it is the best on these very rows.
    Thresholds are round, and dense among the highest scores.

    Cost: one decision for each β, and for a joint method one curve.
    """
    round_ones = {float(f"{each:.3g}") for each in np.geomspace(0.1, 10.0, BETAS)}
    betas = sorted(round_ones | {beta})
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    ranks = np.unique(np.geomspace(1, falling.size, THRESHOLDS).astype(np.int64)) - 1
    thresholds = sorted({float(f"{score:.3g}") for score in falling[ranks]})
    sizes = np.searchsorted(-falling, -np.array(thresholds), side="right")
    maximize: Any = maximize_expected_f if joint else maximize_empirical_f
    given = (falling,) if joint else (truth, scores)
    best = [maximize(*given, beta=each) for each in betas]
    k = np.concatenate([np.array([each.k for each in best], dtype=np.int64), sizes])
    sets = TopSets(falling if joint else np.zeros_like(falling), truth[order]).at(k)
    limits = [*(float(each.threshold) if each.k else None for each in best), *thresholds]
    for each, limit in zip(sets, limits, strict=True):
        each["threshold"] = limit
    decisions, cuts = sets[: len(best)], sets[len(best) :]
    if joint:
        for at, decision in zip(decisions, best, strict=True):
            at |= {"f": decision.expected, "std": decision.std}
        curves = np.array([expected_f_curve(falling, beta=each)[sizes] for each in betas])
        for cut, values in zip(cuts, curves.T.round(7).tolist(), strict=True):
            cut["f"] = values
    return {
        "n": int(truth.size),
        "positives": int(truth.sum()),
        "expects": joint,
        "mean": float(scores.sum()),
        "beta": beta,
        "betas": betas,
        "decisions": decisions,
        "cuts": cuts,
    }


def svg(
    display: Any,
    description: str,
    *,
    title: str = "",
    level: float | None = None,
    wide: bool = False,
) -> Markup:
    """Draw a display, with a dotted line at a level, as SVG that can stand inside a page.

    What is black takes the colour of the page's text, light or dark.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    settings: Any = {**SETTINGS, "svg.hashsalt": description}  # no two pictures share names
    with mpl.rc_context(settings):
        figure = Figure(figsize=(7.4 if wide else 5.6, 2.7 if wide else 3.6), layout="constrained")
        ax = display.plot(figure.subplots()).ax_
        if title:
            ax.set_title(title, loc="left", fontsize="medium")
        if level is not None:
            ax.axhline(level, color="#1d8f6a", lw=1, ls=":")
            ax.set_ylim(top=max(ax.get_ylim()[1], min(1.0, 1.1 * level)))
        out = io.StringIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")  # what no font has is drawn as a box
            figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*"', "<g", text).replace("#000000", "currentColor")
    box = re.search(r'viewBox="[^"]*"', text)
    assert box is not None
    opening = f'<svg {box[0]} role="img" aria-label="{escape(description)}">'
    return Markup(opening + text[text.index(">") + 1 :])


def code(comparison: Comparison) -> str:
    """Return Python code that makes the chosen method, fits it and predicts."""
    imports: set[str] = set()
    written = _written(_bare(comparison.estimator), imports)
    fitted = f"model = {written}.fit(X, y)"
    return "\n".join([*sorted(imports), "", fitted, "labels = model.predict(X_new)\n"])


def _bare(model: Any) -> Any:
    """Return a classifier without the preprocessing before it, and before what a method wraps.

    What has a pipeline inside and is not ours stays whole: a search names the steps of its own.
    """
    if isinstance(model, Pipeline | PlainClassifier):
        return _bare(model[-1] if isinstance(model, Pipeline) else model.estimator)
    given = model.get_params(deep=False)
    if not type(model).__module__.startswith("argmaxf.") or given.get("estimator") is None:
        return model
    return type(model)(**{**given, "estimator": _bare(given["estimator"])})


def _written(value: Any, imports: set[str]) -> str:
    """Return the call that makes a classifier, whole: what it shows of itself may be cut off.

    The lines that import its classes are added to `imports`.
    """
    kind = type(value)
    if isinstance(value, np.ndarray | np.generic):
        return _written(value.tolist(), imports)
    if isinstance(value, dict):
        pairs = (f"{key!r}: {_written(each, imports)}" for key, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple):
        inside = ", ".join(_written(each, imports) for each in value)
        return f"[{inside}]" if kind is list else f"({inside},)"
    if isinstance(value, float) and value != value:  # what XGBoost takes for missing
        imports.add("from numpy import nan")
    if kind.__module__.startswith("argmaxf.") or isinstance(value, BaseEstimator):
        imports.add(f"from {_home(kind)} import {kind.__name__}")
    if not isinstance(value, BaseEstimator):
        return repr(value)
    usual = {name: each.default for name, each in signature(kind).parameters.items()}
    given = value.get_params(deep=False).items()
    # what a signature does not name, as in XGBoost, is None by default
    other = [f"{k}={_written(v, imports)}" for k, v in given if repr(v) != repr(usual.get(k))]
    return f"{kind.__name__}({', '.join(other)})"


def _home(kind: type) -> str:
    """Return the public module that a class is imported from."""
    if kind.__module__.startswith("argmaxf."):
        top_level = hasattr(argmaxf, kind.__name__)
        return "argmaxf" if top_level else ".".join(kind.__module__.split(".")[:2])
    public = takewhile(lambda part: not part.startswith("_"), kind.__module__.split("."))
    return ".".join(public) or kind.__module__
