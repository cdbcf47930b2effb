"""The comparison in words: the decision in one sentence, and how to use it in code."""

from __future__ import annotations

import numpy as np

from argmaxf.displays.drawing import name_of_f
from argmaxf.expected.evaluate import expected_f
from argmaxf.report.comparison import Comparison

CLASSIFIERS = {
    "logistic": ("sklearn.linear_model", "LogisticRegression", "max_iter=1000"),
    "forest": ("sklearn.ensemble", "RandomForestClassifier", "300, min_samples_leaf=2"),
    "boosting": ("sklearn.ensemble", "HistGradientBoostingClassifier", ""),
    "nb": ("sklearn.naive_bayes", "GaussianNB", ""),
}
ESTIMATORS = {
    "ML^δ": "ThresholdFClassifier",
    "ML^E": "ExpectedFClassifier",
    "F^δ": "SoftFClassifier",
    "SVMperf": "MarginFClassifier",
    "cost": "CostSensitiveFClassifier",
}
WRAPPING = ("ML^δ", "ML^E", "cost")
ON_PROBABILITIES = ("ML^.5", "ML^δ", "ML^E")


def sentence(comparison: Comparison) -> str:
    """Return the decision in one sentence: the method, what it selects, F and its spread."""
    f, best = name_of_f(comparison.options.beta), comparison.method
    what = "macro " if len(comparison.names) > 1 else ""
    score = f"{what}{f} {best.score.value:.3f} [{best.score.low:.3f}, {best.score.high:.3f}]"
    return f"Use {best.name}: {_selection(comparison)}; {score} on rows it was not trained on."


def _selection(comparison: Comparison) -> str:
    chosen = comparison.predictions[comparison.chosen]
    if chosen.shape[1] > 1:
        return f"it selects {chosen.sum():,} of {chosen.size:,} labels"
    selects = f"it selects {chosen.sum():,} of {len(chosen):,} rows"
    if comparison.chosen not in ON_PROBABILITIES:  # the classifier's expectations are not its own
        return selects
    expected = expected_f(comparison.proba[:, 0], chosen[:, 0], beta=comparison.options.beta)
    f = name_of_f(comparison.options.beta)
    return f"{selects}, where the model expects {f} {expected.mean:.3f} ± {expected.std:.3f}"


def code(comparison: Comparison, saved: str | None = None) -> str:
    """Return Python code that uses the result: the saved model, or one like it."""
    if saved is not None:
        return (
            "import skops.io\n\n"
            f"file = {saved!r}\n"
            "trusted = skops.io.get_untrusted_types(file=file)  # look at this list first\n"
            "model = skops.io.load(file, trusted=trusted)\n"
            "labels = model.predict(new_rows)  # a frame with the columns of the training table\n"
        )
    return _fresh(comparison)


def _fresh(comparison: Comparison) -> str:
    options, name = comparison.options, comparison.chosen
    module, classifier, arguments = CLASSIFIERS[options.estimator]
    own = ESTIMATORS.get(name)
    inner, beta = f"{classifier}({arguments})", f"beta={options.beta:g}"
    if own is None:
        made, imports = inner, [f"from {module} import {classifier}"]
    elif name in WRAPPING:
        made = f"{own}({inner}, {beta})"
        imports = [f"from argmaxf import {own}", f"from {module} import {classifier}"]
    else:
        made, imports = f"{own}({beta})", [f"from argmaxf import {own}"]
    return "\n".join([*imports, "", f"model = {made}.fit(X, y)", "labels = model.predict(X_new)\n"])


def summary(comparison: Comparison) -> list[str]:
    """Return what the terminal says after the table: the decision, the reason, the notes."""
    rate = comparison.truth.mean(axis=0)
    seen = (
        f"{len(comparison.truth):,} rows rated ({comparison.rated_on}), "
        f"{np.min(rate):.1%} positive" + (" in the rarest label" if len(rate) > 1 else "") + "."
    )
    return [sentence(comparison), comparison.reason, seen, *comparison.notes]
