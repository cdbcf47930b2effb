"""Fixed thresholds as objects of scikit-learn alone, for places where argmaxf is not installed.

A rule is a row of steps from X to a table with one column for each label: what the models answer,
the scores, their curves, the mean. `FunctionTransformer` turns functions and methods of fitted
models into steps. The graphs of ONNX are made from the same steps.
"""

from __future__ import annotations

import pickletools
from collections.abc import Sequence
from operator import itemgetter
from pickle import dumps
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer
from sklearn.svm import LinearSVC

from argmaxf.estimators.calibration import TIE, curve_data
from argmaxf.estimators.fixed_rule import (
    LARGEST,
    Column,
    FixedRule,
    linear_model,
    without_argmaxf,
)
from argmaxf.estimators.scores import Score, answering

SMALLEST = 1e-300  # in place of probabilities of zero, so that rows of zeros have a sum
Steps = list[tuple[str, Any]]
FINITE = ("finite", FunctionTransformer(np.clip, kw_args={"a_min": -LARGEST, "a_max": LARGEST}))
COLUMN = ("column", FunctionTransformer(np.expand_dims, kw_args={"axis": 1}))
PRODUCT = ("product", FunctionTransformer(np.prod, kw_args={"axis": 1, "keepdims": True}))
PROBABILITY = ("probability", FunctionTransformer(expit))
LOG_ODDS = [
    ("inside", FunctionTransformer(np.clip, kw_args={"a_min": SMALLEST, "a_max": 1.0 - 2.0**-53})),
    ("log-odds", FunctionTransformer(logit)),
]


def as_sklearn(rule: FixedRule) -> Any:
    """Return a fitted classifier of scikit-learn that predicts as the rule does."""
    labels = rule.labels
    if labels.kind == "multiclass":
        margins = np.diag(rule.gain), -rule.gain * rule.threshold
        tail = linear_model(*margins, labels.classes, LinearSVC)
        made = Pipeline([*steps_of(rule, range(len(labels.classes))), ("margins", tail)])
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
    column, upwards = rule.members[0][label], positive == classes[-1]
    score, method = column.scores[0], "decision_function" if rule.on_scores else "predict_proba"
    plain = Column([Score(score.model, method, place=score.place, sign=score.sign)], [])
    its_own = rule.odds is None and len(rule.members) == 1 and column == plain
    if its_own and np.array_equal(score.model.classes_, classes):
        base = without_argmaxf(score.model)
    else:
        end = linear_model([1.0 if upwards else -1.0], 0.0, classes)
        values = ("values", _side_by_side([steps_of(rule, [label])]))
        base = Pipeline([values, *([] if rule.on_scores else LOG_ODDS), ("score", end)])
    return FixedThresholdClassifier(
        FrozenEstimator(base),
        threshold=float(rule.threshold[label]),
        pos_label=positive,
        response_method=method,
    )


def steps_of(rule: FixedRule, labels: Sequence[int]) -> Steps:
    """Return the steps from rows to what the thresholds of some labels are on."""
    n, competing = len(labels), rule.labels.kind == "multiclass"
    steps = _mean([_member([each[j] for j in labels], competing) for each in rule.members], n)
    if rule.odds is None:
        return steps
    odds = rule.odds[labels]
    if competing:
        return [*steps, ("rate", _linear(np.diag(odds))), *_summing_to_one("at this rate")]
    return [*steps, *LOG_ODDS, ("rate", _linear(np.eye(n), np.log(odds))), PROBABILITY]


def _member(columns: Sequence[Column], competing: bool) -> Steps:
    """Return the steps from rows to the probability or score of each label by one member."""
    steps, parts, first = _scores([s for column in columns for s in column.scores]), [], 0
    for column in columns:
        own = range(first, first := first + len(column.scores))
        parts.append([_only(own), *_column(column)])
    steps.append(("labels", _side_by_side(parts)))
    calibrated = any(column.curves or column.logistic for column in columns)
    return [*steps, *_summing_to_one("of classes")] if competing and calibrated else steps


def _column(column: Column) -> Steps:
    """Return the steps from the scores of a label to its probability, or its score."""
    n = len(column.scores)
    mean = ("mean", _linear(np.full((1, n), 1.0 / n)))
    if not column.curves:
        return [mean, *([PROBABILITY] * column.logistic)]
    curves = _side_by_side([[_only([i]), *_curve(c)] for i, c in enumerate(column.curves)])
    # As `break_ties` orders rows of equal probability: times 1 - TIE / 2 (1 - s / (1 + |s|)).
    with_one = ("with one", _linear([[1.0], [0.0]], [0.0, 1.0]))
    lower = ("lower", _linear([[TIE / 2.0, 0.0]], [1.0 - TIE / 2.0]))
    place = [mean, with_one, ("place", Normalizer("l1")), lower]
    return [("both", _side_by_side([[("curves", curves), mean], place])), PRODUCT]


def _scores(scores: Sequence[Score]) -> Steps:
    """Return the steps from rows to scores; what several are columns of is computed once."""
    answers: dict[Any, tuple[int, Steps]] = {}
    places, width = {}, 0
    for score in [each for each in scores if each.constant is None] or scores[:1]:
        key = id(score.model), answering(score.model, score.method), score.output
        if key not in answers:
            answers[key] = width, _answer(score)
            width += _width(score)
        places[id(score)] = answers[key][0]
    coef, shift = np.zeros((len(scores), width)), np.zeros(len(scores))
    for row, score in enumerate(scores):
        if score.constant is not None:
            shift[row] = np.clip(score.constant, -LARGEST, LARGEST)
            continue
        first, place = places[id(score)], score.place or 0
        coef[row, first + place] = score.sign
        if score.method == "log_odds":
            coef[row, first + 1 - place] = -score.sign
    steps = [("answers", _side_by_side([steps for _, steps in answers.values()]))]
    plain = np.array_equal(coef, np.eye(width)) and not shift.any()
    return steps if plain else [*steps, ("scores", _linear(coef, shift))]


def _width(score: Score) -> int:
    classes = score.model.classes_ if score.output is None else score.model.classes_[score.output]
    return 1 if _is_flat(score) else len(classes)


def _is_flat(score: Score) -> bool:
    """Whether the model answers with one number for each row."""
    scored = score.place is None and len(score.model.classes_) == 2
    return scored and answering(score.model, score.method) == "decision_function"


def _answer(score: Score) -> Steps:
    """Return the steps from rows to the table of which the score is a column."""
    method = answering(score.model, score.method)
    steps: Steps = [("method", FunctionTransformer(getattr(without_argmaxf(score.model), method)))]
    if score.output is not None:
        steps += [("label", FunctionTransformer(itemgetter(score.output)))]
    return steps + ([COLUMN] if _is_flat(score) else []) + ([FINITE] * (method[-9:] == "log_proba"))


def _curve(curve: Any) -> Steps:
    """Return the steps from a score to its probability."""
    ((form, numbers),) = curve_data(curve).items()
    if form == "isotonic":
        return [("isotonic", FunctionTransformer(curve.predict)), COLUMN]
    if form == "sigmoid":
        line = _linear(np.array([[numbers["slope"]]]), np.array([numbers["intercept"]]))
        return [("line", line), PROBABILITY]
    return []


def steps_of_calibrated(model: CalibratedClassifierCV) -> Steps:
    """Return the steps from rows to the probabilities of a calibrated classifier."""
    tables = []
    for part in model.calibrated_classifiers_:
        scored, n = hasattr(part.estimator, "decision_function"), len(part.calibrators)
        method = getattr(part.estimator, "decision_function" if scored else "predict_proba")
        places = range(n) if n > 1 else [-1]
        curves = [[_only([i]), *_curve(c)] for i, c in zip(places, part.calibrators, strict=True)]
        pair = [("pair", _linear(np.array([[-1.0], [1.0]]), np.array([1.0, 0.0])))]
        tables.append([
            *([("method", FunctionTransformer(method))] + [COLUMN] * (scored and n == 1)),
            ("curves", _side_by_side(curves)),
            *(_summing_to_one("of classes") if n > 1 else pair),
        ])  # fmt: skip
    return _mean(tables, len(model.classes_))


def _mean(tables: Sequence[Steps], n: int) -> Steps:
    """Return the steps to the mean of several tables of n columns."""
    m, steps = len(tables), [("members", _side_by_side(tables))]
    return [*steps, ("mean", _linear(np.hstack([np.eye(n) / m] * m)))] if m > 1 else steps


def _side_by_side(parts: Sequence[Steps]) -> Any:
    """Return a transformer to the columns of several rows of steps.

    It is a function: whenever scikit-learn looks at a pipeline it visits all pipelines in it.
    """
    pipelines = [(f"part{i}", Pipeline(steps)) for i, steps in enumerate(parts)]
    made = FeatureUnion(pipelines) if len(parts) > 1 else pipelines[0][1]
    return FunctionTransformer(
        made.transform
    )  # scikit-learn asks for the tags of all inside others


def _only(places: Sequence[int]) -> tuple[str, Any]:
    return "only", FunctionTransformer(np.take, kw_args={"indices": [*places], "axis": 1})


def _linear(coef: Any, intercept: Any = 0.0) -> FunctionTransformer:
    """Return a transformer of a table to linear combinations of its columns."""
    model = LinearRegression()
    model.coef_, model.intercept_ = np.asarray(coef), np.asarray(intercept)
    return FunctionTransformer(model.predict)


def _summing_to_one(name: str) -> Steps:
    inside = FunctionTransformer(np.clip, kw_args={"a_min": SMALLEST, "a_max": None})
    return [(f"inside {name}", inside), (f"sum {name}", Normalizer("l1"))]
