"""The comparison as one self-contained HTML page, with Python code that uses its result."""

from __future__ import annotations

import io
import platform
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from importlib import metadata
from inspect import signature
from itertools import takewhile
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from scipy.special import expit, logit
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

import argmaxf
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
from argmaxf.empirical.threshold import maximize_empirical_f
from argmaxf.estimators.meta import PlainClassifier
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.expected.values import TopSets, expected_f_curve
from argmaxf.measures import FBeta

MOST_LABELS = 6  # of many labels the rarest are shown: they are the hard ones
VERSIONS = ("argmaxf", "numpy", "scipy", "scikit-learn", "polars", "matplotlib")
BETAS = 49  # from 0.1 to 10
THRESHOLDS = 161
TEXT = "#010203"  # stands for the page's text colour until the picture is written

COLOURS = (
    "text.color",
    "axes.labelcolor",
    "axes.edgecolor",
    "xtick.color",
    "ytick.color",
    "xtick.labelcolor",
    "ytick.labelcolor",
    "legend.labelcolor",
)
SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",  # letters stay letters: crisp, selectable, small
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    **dict.fromkeys(COLOURS, TEXT),
}


def render(
    comparison: Comparison,
    *,
    command: Sequence[str],
    made_with: str = "",
    saved: tuple[str, Sequence[str]] | None = None,
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
    if guaranteed(comparison):
        explains += " The guarantee is left aside here: these are the best sets without it."
    on_proba = method.rests_on != "rows"
    return Moved(scores, rows.truth, comparison.beta, on_proba, explains)


def guaranteed(comparison: Comparison) -> dict[str, float]:
    """Return the constraints that the method to use guarantees, and their confidence level."""
    model = comparison.estimator
    sure = getattr(model, "confidence_level", None)
    names = [field.name for field in fields(Constraints)]
    limits = {name: getattr(model, name, None) for name in names}
    if isinstance(getattr(model, "max_selected", None), float):
        limits["max_selected_rate"] = model.max_selected
    return {k: v for k, v in {**limits, "confidence_level": sure}.items() if v is not None}


def _expected_by_size(comparison: Comparison, y: Any, p: Any) -> tuple[str, ExpectedFDisplay]:
    """Return what is expected of each number of rows, and what was found of the best."""
    measure = comparison.measure
    display = ExpectedFDisplay.of(p, measure=measure)
    chosen = np.asarray(display.decision.selected)
    found = measure.value(np.sum(y[chosen]), chosen.sum(), y.sum(), y.size)
    return (
        f"Expected {measure.title} against how many rows are selected. Found on the labels, for "
        f"the best: {float(found):.3f}.",
        display,
    )


def _found_by_threshold(comparison: Comparison, y: Any, p: Any) -> tuple[str, EmpiricalFDisplay]:
    """Return what each threshold finds, with its guarantees where those were asked for."""
    chance, measure = guaranteed(comparison), comparison.measure
    caption = f"Precision, recall and {measure.title} found at each threshold"
    try:
        display = EmpiricalFDisplay.of(y, p, measure=measure, **chance)
    except GuaranteeError:
        caption += "; none of them meets the guarantee that was asked for"
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


def beta_grid(beta: float) -> list[float]:
    """Return the values of β that the page offers: round ones, 1 and the one asked for included.

    >>> len(beta_grid(1.0)), beta_grid(3.0)[0], 3.0 in beta_grid(3.0)
    (49, 0.1, True)
    """
    grid = {_rounded(b) for b in np.geomspace(0.1, 10.0, BETAS)}
    return sorted(grid | {beta})


def threshold_grid(proba: Floats) -> list[float]:
    """Return the thresholds that the page offers: round, and dense where decisions are made."""
    falling = np.sort(proba)[::-1]
    inside = falling[(falling > 0) & (falling < 1)]
    if not inside.size:
        return [0.5]
    low, high = inside[int(0.98 * (inside.size - 1))], inside[0]
    spread = expit(np.linspace(logit(low), logit(high), THRESHOLDS))
    return sorted({_rounded(t) for t in spread})


def live_numbers(proba: Floats, truth: Bools, beta: float) -> dict[str, Any]:
    """Return the library's answers for one label, ready to be written into the page.

    `decisions` has, for each β, the best set: k, threshold, E[F], its standard deviation, expected
    precision and recall, expected and found true positives. `cuts` has, for each threshold, k,
    expected precision and recall, expected and found true positives, and E[F] for each β.

    Cost: one decision and one curve for each β.
    """
    betas = beta_grid(beta)
    order = np.argsort(-proba, kind="stable")
    falling = proba[order]
    top = TopSets(falling, truth[order])
    best = [maximize_expected_f(falling, beta=each) for each in betas]
    thresholds = threshold_grid(proba)
    sizes = np.searchsorted(-falling, -np.array(thresholds), side="right")
    curves = np.array([expected_f_curve(falling, beta=each)[sizes] for each in betas])
    return {
        "n": int(truth.size),
        "positives": int(truth.sum()),
        "expects": True,
        "mean": float(falling.sum()),
        "beta": beta,
        "betas": betas,
        "decisions": [
            {"threshold": d.threshold if d.k else None, "f": d.expected, "std": d.std, **at}
            for d, at in zip(best, top.at(np.array([d.k for d in best])), strict=True)
        ],
        "cuts": [
            {"threshold": t, "f": [round(f, 7) for f in values], **at}
            for t, at, values in zip(thresholds, top.at(sizes), curves.T.tolist(), strict=True)
        ],
    }


def live_scores(score: Floats, truth: Bools, beta: float) -> dict[str, Any]:
    """Return the same for scores that are no probabilities: what is found at each cut.

    The best set for each β is the best on these very rows. Cost: one exact cut for each β.
    """
    betas = beta_grid(beta)
    order = np.argsort(-score, kind="stable")
    falling, found = score[order], np.concatenate([[0], np.cumsum(truth[order])])
    best = [maximize_empirical_f(truth, score, beta=b) for b in betas]
    thresholds = np.unique(np.quantile(score, np.linspace(0, 1, THRESHOLDS)))
    sizes = np.searchsorted(-falling, -thresholds, side="right")
    return {
        "n": int(truth.size),
        "positives": int(truth.sum()),
        "expects": False,
        "beta": beta,
        "betas": betas,
        "decisions": [
            {"threshold": _finite(b.threshold), "k": int(b.k), "tp": int(found[int(b.k)])}
            for b in best
        ],
        "cuts": [
            {"threshold": float(t), "k": int(k), "tp": int(found[k])}
            for t, k in zip(thresholds, sizes, strict=True)
        ],
    }


def _finite(number: float) -> float | None:
    """Return a threshold as JSON can hold it; none where nothing is selected."""
    return float(number) if np.isfinite(number) else None


def _rounded(number: float) -> float:
    return float(f"{number:.3g}")


def svg(display: Any, description: str, *, wide: bool = False) -> Markup:
    """Draw a display and return it as SVG that can stand inside a page, light or dark."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    settings: Any = {**SETTINGS, "svg.hashsalt": description}  # no two pictures share names
    with mpl.rc_context(settings):
        figure = Figure(figsize=(7.4 if wide else 5.6, 2.7 if wide else 3.6), layout="constrained")
        display.plot(figure.subplots())
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return Markup(_inline(out.getvalue(), description))


def _inline(text: str, description: str) -> str:
    """Leave out what a page has already, and let the picture take the width it is given."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = text.replace(TEXT, "currentColor")
    box = re.search(r'viewBox="[^"]*"', text)
    assert box is not None
    opening = f'<svg {box[0]} role="img" aria-label="{escape(description)}">'
    return opening + text[text.index(">") + 1 :]


def code(comparison: Comparison, saved: tuple[str, Sequence[str]] | None = None) -> str:
    """Return Python code that uses the result: the saved model, or one like it.

    `saved` is the name of a model file, and the types in it that skops does not trust by itself.
    They are listed as they were when it was written, so that a file with others is refused when it
    is loaded.
    """
    if saved is not None:
        file, untrusted = saved
        types = "".join(f"    {name!r},\n" for name in untrusted)
        return (
            "import skops.io\n\n"
            f"file = {file!r}\n"
            "print(skops.io.get_untrusted_types(file=file))  # look at the types in the file\n"
            f"trusted = [  # those of the model when it was saved: load a file with no others\n"
            f"{types}]\n"
            "model = skops.io.load(file, trusted=trusted)\n"
            "labels = model.predict(new_rows)  # a frame with the columns of the training table\n"
        )
    model = _bare(comparison.estimator)
    written = _written(model)
    imports = {f"from {_home(m)} import {type(m).__name__}" for m in _parts(model)}
    if re.search(r"\bnan\b", written):  # what XGBoost takes for missing
        imports.add("from numpy import nan")
    return "\n".join(
        [*sorted(imports), "", f"model = {written}.fit(X, y)", "labels = model.predict(X_new)\n"]
    )


def _bare(model: Any) -> Any:
    """Return a classifier without the preprocessing before it, and before what a method wraps.

    What has a pipeline inside and is not ours stays whole: a search names the steps of its own.
    """
    if isinstance(model, Pipeline | PlainClassifier):
        return _bare(model[-1] if isinstance(model, Pipeline) else model.estimator)
    given = model.get_params(deep=False)
    if _home(model) != "argmaxf" or given.get("estimator") is None:
        return model
    return type(model)(**{**given, "estimator": _bare(given["estimator"])})


def _written(value: Any) -> str:
    """Return the call that makes a classifier, whole: what it shows of itself may be cut off."""
    if isinstance(value, np.ndarray | np.generic):
        return _written(value.tolist())
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_written(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_written, value))},)"
    if not isinstance(value, BaseEstimator):
        return repr(value)
    usual = {name: each.default for name, each in signature(type(value)).parameters.items()}
    given = value.get_params(deep=False).items()
    # what a signature does not name, as in XGBoost, is None by default
    other = [f"{k}={_written(v)}" for k, v in given if repr(v) != repr(usual.get(k))]
    return f"{type(value).__name__}({', '.join(other)})"


def _parts(model: Any) -> Iterator[Any]:
    """Return a classifier and those inside it, or those in a list or dictionary of them."""
    if isinstance(model, list | tuple | dict):
        inside: Iterable[Any] = model.values() if isinstance(model, dict) else model
    elif isinstance(model, BaseEstimator):
        yield model
        inside = model.get_params(deep=False).values()
    else:
        if type(model).__module__.startswith("argmaxf."):  # a measure or a splitter
            yield model
        return
    for each in inside:
        yield from _parts(each)


def _home(model: Any) -> str:
    """Return the public module that a class is imported from."""
    module = type(model).__module__
    if module.startswith("argmaxf."):
        top_level = hasattr(argmaxf, type(model).__name__)
        return "argmaxf" if top_level else ".".join(module.split(".")[:2])
    public = takewhile(lambda part: not part.startswith("_"), module.split("."))
    return ".".join(public) or module
