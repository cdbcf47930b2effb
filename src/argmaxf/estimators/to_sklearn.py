"""Fixed thresholds as objects of scikit-learn alone, for places where argmaxf is not installed.

What has no class of its own there is composed of public parts: `FunctionTransformer` turns a method
of a fitted model into features, and linear models with given coefficients pick columns of them.
"""

from __future__ import annotations

import pickletools
from collections.abc import Sequence
from copy import copy
from functools import cache
from operator import itemgetter
from pickle import dumps
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer
from sklearn.svm import LinearSVC

from argmaxf._base.arrays import Floats
from argmaxf.estimators.calibration import Sigmoid
from argmaxf.estimators.fixed_rule import (
    LARGEST,
    Column,
    FixedRule,
    Score,
    linear_model,
    without_argmaxf,
)

SMALLEST = 1e-300  # in place of probabilities of zero, so that rows of zeros have a sum


def as_sklearn(rule: FixedRule) -> Any:
    """Return a fitted classifier of scikit-learn that predicts as the rule does."""
    if rule.limited:
        raise ValueError(
            "a threshold under a limit may lie among rows of equal probability, which scikit-learn "
            "cannot tell apart; use calibration='sigmoid', or export to ONNX"
        )
    labels = rule.labels
    if labels.kind == "multiclass":
        made = _competing(rule)
    elif labels.is_multilabel:
        made = MultiOutputClassifier(FixedThresholdClassifier(LogisticRegression()))
        made.estimators_ = [_one_label(rule, j, np.array([0, 1]), 1) for j in labels.classes]
        made.classes_ = [np.array([0, 1])] * len(made.estimators_)
    elif len(labels.classes) == 1:
        made = rule.members[0][0].scores[0].model
    else:
        made = _one_label(rule, 0, labels.classes, labels.positive)
    _refuse_argmaxf(made)
    return made


def _refuse_argmaxf(made: Any) -> None:
    """Refuse, by name, what has remained of this package."""
    names = [str(text) for _, text, _ in pickletools.genops(dumps(made, protocol=3)) if text]
    left = sorted({name.split()[-1] for name in names if name.startswith("argmaxf")})
    if left:
        raise ValueError(
            f"scikit-learn has nothing in place of {', '.join(left)}: freeze a classifier of "
            "scikit-learn's own parts, or export the predictions"
        )


def _one_label(rule: FixedRule, label: int, classes: Any, positive: Any) -> Any:
    """Return a classifier for one label, with its threshold."""
    columns = [member[label] for member in rule.members]
    upwards = positive == classes[-1]
    if rule.on_scores:
        (column,) = columns
        base, method = _scorer(column.scores[0], classes, upwards), "decision_function"
    else:
        base, method = _probabilities(columns, classes, upwards), "predict_proba"
        if rule.odds is not None:
            shift = float(np.log(rule.odds[label])) * (1.0 if upwards else -1.0)
            base = _at_another_rate(base, shift, classes)
    return FixedThresholdClassifier(
        FrozenEstimator(base),
        threshold=float(rule.threshold[label]),
        pos_label=positive,
        response_method=method,
    )


def _probabilities(columns: Sequence[Column], classes: Any, upwards: bool = True) -> Any:
    """Return a classifier with the mean of the columns as probability of one of two classes."""
    first = columns[0]
    if len(columns) == 1 and not first.curves:
        (score, *more) = first.scores
        own: Any = getattr(score.model, "classes_", None)
        if first.logistic:
            parts = [(f"model{i}", _feature(s)) for i, s in enumerate(first.scores)]
            sign, n = 1.0 if upwards else -1.0, len(first.scores)
            mean = linear_model(np.full(n, sign / n), 0.0, classes)
            return Pipeline([("scores", FeatureUnion(parts)), ("mean", mean)])
        if not more and score.output is None and np.array_equal(own, classes):
            return without_argmaxf(score.model)
    pairs = []
    most = np.lcm.reduce([len(column.scores) for column in columns])
    for column in columns:  # of models with fewer curves than another each counts more
        if column.logistic:
            column = Column([_as_score(column, classes)], [None])
        curves = column.curves or [None] * len(column.scores)
        pairs += [*zip(column.scores, curves, strict=True)] * int(most // len(column.scores))
    made, member = _calibrated_templates()["isotonic"]
    made = copy(made)
    made.calibrated_classifiers_ = []
    for score, curve in pairs:
        each = copy(member)
        each.estimator, each.classes = _scorer(score, classes), classes
        each.calibrators = [_calibrator(curve, upwards)]
        made.calibrated_classifiers_.append(each)
    made.estimator = FrozenEstimator(made.calibrated_classifiers_[0].estimator)
    made.classes_ = classes
    return made


def _as_score(column: Column, classes: Any) -> Score:
    """Return the probability of a column without curves as the score of one model."""
    return Score(_probabilities([column], classes), "predict_proba", place=1)


@cache
def _calibrated_templates() -> dict[str, tuple[Any, Any]]:
    """Return classifiers calibrated in each form, and the part of them that has the curve."""
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0, 1, 0, 1])
    fitted = FrozenEstimator(linear_model([1.0], 0.0, [0, 1]))
    both = {
        form: CalibratedClassifierCV(fitted, method=form, cv=2) for form in ("isotonic", "sigmoid")
    }
    for made in both.values():
        made.fit(X, y)
        vars(made).pop("n_features_in_", None)
    return {form: (made, made.calibrated_classifiers_[0]) for form, made in both.items()}


def _calibrator(curve: Any, upwards: bool) -> Any:
    """Return a curve as scikit-learn's: of the positive class, or downwards of the other one."""
    if isinstance(curve, Sigmoid):
        made = copy(_calibrated_templates()["sigmoid"][1].calibrators[0])
        slope, shift = sigmoid_line(curve)
        sign = -1.0 if upwards else 1.0
        made.a_, made.b_ = sign * slope, sign * shift
        return made
    if type(curve) is IsotonicRegression and upwards:
        return curve
    if curve is None:
        x = y = np.array([0.0, 1.0])
    else:
        x, y = knots(curve)
    how = {"y_min": 0.0, "y_max": 1.0, "increasing": upwards, "out_of_bounds": "clip"}
    return IsotonicRegression(**how).fit(x, y if upwards else 1.0 - y)


def sigmoid_line(curve: Any) -> tuple[float, float]:
    """Return a and b of 1 / (1 + exp(-(a·score + b))), of scikit-learn's curves too."""
    if not isinstance(curve, Sigmoid):
        return -float(curve.a_), -float(curve.b_)
    slope = float(curve.model.coef_[0, 0] / curve.scale)
    return slope, float(curve.model.intercept_[0] - slope * curve.centre)


def knots(curve: Any) -> tuple[Floats, Floats]:
    """Return the knots of an isotonic curve; refuse any other by name."""
    if type(curve) is not IsotonicRegression:
        raise ValueError(
            f"a calibration by {type(curve).__name__} cannot be exported; use "
            "calibration='isotonic' or 'sigmoid'"
        )
    return np.asarray(curve.X_thresholds_), np.asarray(curve.y_thresholds_)


def curve_as_data(column: Column) -> list[dict[str, Any]]:
    """Return the curves of a column as numbers, each with the scores that it takes."""
    data = []
    for score, curve in zip(
        column.scores, column.curves or [None] * len(column.scores), strict=True
    ):
        made: dict[str, Any] = {"scores": score.method}
        if curve is None:
            made |= {"none": {}}
        elif isinstance(curve, Sigmoid):
            made["sigmoid"] = dict(zip(("slope", "intercept"), sigmoid_line(curve), strict=True))
        else:
            x, y = knots(curve)
            made["isotonic"] = {"x": x.tolist(), "y": y.tolist()}
        data.append(made)
    return data


def _feature(score: Score) -> Pipeline:
    """Return a transformer of rows to one score, (n, 1)."""
    part = FunctionTransformer(_scorer(score, np.array([0, 1])).decision_function)
    return Pipeline([("score", part), ("column", _numpy(np.expand_dims, axis=1))])


def _numpy(function: Any, **how: Any) -> FunctionTransformer:
    return FunctionTransformer(function, kw_args=how)


def _scorer(score: Score, classes: Any, upwards: bool = True) -> Any:
    """Return a classifier whose decision function is the score, or minus the score."""
    model, sign = without_argmaxf(score.model), score.sign if upwards else -score.sign
    method, intercept = score.method, 0.0
    if score.constant is not None:
        method = "predict_proba" if hasattr(model, "predict_proba") else method
        intercept = sign * score.constant
    if method == "decision_function" and len(model.classes_) == 2 and score.place is None:
        if score.constant is None and sign > 0 and np.array_equal(model.classes_, classes):
            return model
        steps: list[Any] = [("answer", FunctionTransformer(model.decision_function))]
        steps += [("column", _numpy(np.expand_dims, axis=1))]
        coef = np.array([0.0 if score.constant is not None else sign])
        return Pipeline([*steps, ("sign", linear_model(coef, intercept, classes))])
    own = {"log_odds": "predict_log_proba"}.get(method, method)
    steps, seen = [("answer", FunctionTransformer(getattr(model, own)))], model.classes_
    if score.output is not None:
        steps += [("target", FunctionTransformer(itemgetter(score.output)))]
        seen = seen[score.output]
    if method == "log_odds":
        steps += [("finite", _numpy(np.clip, a_min=-LARGEST, a_max=LARGEST))]
    coef = np.zeros(len(seen))
    if score.place is not None:
        coef[score.place] = sign
        if method == "log_odds":
            coef[1 - score.place] = -sign
    return Pipeline([*steps, ("column", linear_model(coef, intercept, classes))])


def _at_another_rate(base: Any, shift: float, classes: Any) -> Pipeline:
    """Return a classifier with all odds multiplied, as at another rate of positives."""
    steps = [
        ("probabilities", FunctionTransformer(base.predict_proba)),
        ("positive", _numpy(np.take, indices=[1], axis=1)),
        ("inside", _numpy(np.clip, a_min=SMALLEST, a_max=1.0 - 2.0**-53)),
        ("log-odds", FunctionTransformer(logit)),
        ("rate", linear_model([1.0], shift, classes)),
    ]
    return Pipeline(steps)


def _competing(rule: FixedRule) -> Pipeline:
    """Return a classifier that gives each row the class with the largest margin."""
    n, sum_to_one = len(rule.labels.classes), not rule.on_scores
    unions = [_table(member, rule) for member in rule.members]
    steps: list[Any] = [("probabilities", unions[0])]
    if len(unions) > 1 or rule.odds is not None:
        mean = LinearRegression()
        ratio = np.ones(n) if rule.odds is None else rule.odds
        mean.coef_ = np.hstack([np.diag(ratio / len(unions))] * len(unions))
        mean.intercept_ = np.zeros(n)
        steps = [("members", FeatureUnion([(f"member{i}", u) for i, u in enumerate(unions)]))]
        steps += [("mean", FunctionTransformer(mean.predict))]
        if rule.odds is not None and sum_to_one:
            steps += _summing_to_one()
    margins = np.diag(rule.gain), -rule.gain * rule.threshold
    tail = linear_model(*margins, rule.labels.classes, LinearSVC)
    return Pipeline([*steps, ("margins", tail)])


def _summing_to_one() -> list[Any]:
    return [("inside", _numpy(np.clip, a_min=SMALLEST, a_max=None)), ("sum", Normalizer("l1"))]


def _table(member: Sequence[Column], rule: FixedRule) -> Any:
    """Return a transformer of rows to one column for each class."""
    if member[0].curves or any(column.logistic for column in member):
        parts = []
        for j, column in enumerate(member):
            answer = _probabilities([column], np.array([0, 1]))
            steps = [("probabilities", FunctionTransformer(answer.predict_proba))]
            steps += [("positive", _numpy(np.take, indices=[1], axis=1))]
            parts.append((f"class{j}", Pipeline(steps)))
        return Pipeline([("classes", FeatureUnion(parts)), *_summing_to_one()])
    first = member[0].scores[0]
    whole = [Score(first.model, first.method, place=j) for j in range(len(member))]
    if [column.scores[0] for column in member] == whole:
        return FunctionTransformer(getattr(without_argmaxf(first.model), first.method))
    union = [(f"class{j}", _feature(column.scores[0])) for j, column in enumerate(member)]
    return FeatureUnion(union)
