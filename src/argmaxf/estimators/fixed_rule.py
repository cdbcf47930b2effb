"""What a classifier with fixed thresholds computes, as data: what every export is made from.

The score of a label is the mean over members, each the models of `Calibrated`; a label is predicted
where it reaches the threshold, and of competing classes the one with the largest margin.

For places where argmaxf is not installed a rule becomes objects of scikit-learn alone: a row of
steps from X to a table with one column for each label. `FunctionTransformer` turns functions and
methods of fitted models into steps. The graphs of ONNX are made from the same steps.
"""

from __future__ import annotations

import pickletools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter
from pickle import dumps
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer
from sklearn.svm import LinearSVC

from argmaxf._base.arrays import Floats
from argmaxf.estimators.calibration import LARGEST, TIE, Calibrated, Column, curve_data
from argmaxf.estimators.labels import Labels
from argmaxf.estimators.scores import HeldOut, LabelScorer, Score, answering

Steps = list[Any]


@dataclass
class FixedRule:
    """Probabilities or scores of each label, and the thresholds on them.

    The probabilities of a multiclass target are brought to a sum of 1 by each calibrated member.
    """

    labels: Labels
    members: list[Calibrated]
    threshold: Any = np.nan
    gain: Any = 1.0  # what a margin is worth to each class of a multiclass target
    seen: tuple[int, list[int]] | None = None  # rows of training, and positives of each label
    odds: Floats | None = None  # by which the rate in deployment multiplies those of each label

    def __post_init__(self) -> None:
        for name in ("threshold", "gain"):  # one for each label
            values = np.asarray(getattr(self, name), dtype=np.float64)
            setattr(self, name, np.broadcast_to(values, len(self.labels.names)))

    @property
    def on_scores(self) -> bool:
        """Whether the thresholds are on scores, and not on probabilities."""
        return self.members[0].kind != "predict_proba" and not self.members[0].curves

    def scores(self, X: Any) -> Floats:
        """Return the mean score of each label, before `odds`; members blended have own ones."""
        others = [X.other if isinstance(X, HeldOut) else X] * (len(self.members) - 1)
        each = [m.predict(rows) for m, rows in zip(self.members, [X, *others], strict=True)]
        return each[0] if len(each) == 1 else np.asarray(np.mean(each, axis=0))

    def margin(self, X: Any) -> Floats:
        """Return (n, n_columns) margins: not negative where a label is predicted."""
        return margin(self.scores(X), self.threshold, self.gain)

    def columns(self) -> list[list[Column]]:
        """Return how each member makes the score of each label."""
        return [member.columns() for member in self.members]

    def behind(self, steps: Steps) -> FixedRule:
        """Return the rule behind the transformers of a pipeline whose last step it is of."""

        def behind(scorer: LabelScorer) -> LabelScorer:
            models = [Pipeline([*steps, ("classifier", model)]) for model in scorer.models_]
            return LabelScorer.of(models, self.labels)

        members = [replace(m, models=[behind(scorer) for scorer in m.models]) for m in self.members]
        return replace(self, members=members)


def margin(scores: Floats, threshold: Any, gain: Any = 1.0) -> Floats:
    """Return how far scores lie above their thresholds, 0 where both are the same infinity."""
    with np.errstate(invalid="ignore"):
        return np.where(scores == threshold, 0.0, gain * (scores - threshold))


def linear_model(coef: Any, intercept: Any, classes: Any, kind: Any = LogisticRegression) -> Any:
    """Return a fitted linear model of scikit-learn with this decision function."""
    model = kind()
    model.coef_ = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    model.intercept_ = np.atleast_1d(np.asarray(intercept, dtype=np.float64))
    model.classes_, model.n_features_in_ = np.asarray(classes), model.coef_.shape[1]
    model.n_iter_ = np.zeros(1, dtype=np.int32)
    return model


def linear_scorer(labels: Labels, coef: Floats, intercept: Floats) -> LabelScorer:
    """Return the linear scores of labels as models of scikit-learn."""
    if labels.is_multilabel:
        lines = zip(coef, intercept, strict=True)
        return LabelScorer.of([linear_model(*line, [0, 1]) for line in lines], labels)
    sign, classes = labels.sign if labels.is_binary else 1, labels.classes
    classes = np.resize(classes, max(2, len(classes)))  # a constant target has one
    return LabelScorer.of([linear_model(sign * coef, sign * intercept, classes)], labels)


def without_argmaxf(model: Any) -> Any:
    """Return a fitted model with scikit-learn's classes in place of those of this package."""
    if isinstance(model, FrozenEstimator):
        return FrozenEstimator(without_argmaxf(model.estimator))
    if isinstance(model, Pipeline):
        *steps, (name, last) = model.steps
        return Pipeline([*steps, (name, without_argmaxf(last))])
    if not hasattr(model, "fixed_rule"):
        return model
    rule = model.fixed_rule()
    (columns,) = rule.columns()  # of linear models, read by others
    scores = [column.scores[0] for column in columns]
    coef = [s.model.coef_[s.place or 0] for s in scores]
    shifts = [
        s.model.intercept_[s.place or 0] - s.sign * t
        for s, t in zip(scores, rule.threshold, strict=True)
    ]
    kind = LogisticRegression if rule.labels.is_binary else LinearSVC
    return linear_model(coef, np.clip(shifts, -LARGEST, LARGEST), rule.labels.classes, kind)


def step(function: Any, **how: Any) -> FunctionTransformer:
    """Return a function of a table as a step."""
    return FunctionTransformer(function, kw_args=how)


# 1e-300 is in place of probabilities of zero, so that rows of zeros have a sum.
SUMMING_TO_ONE = [step(np.clip, a_min=1e-300, a_max=None), Normalizer("l1")]
LOG_ODDS = [step(np.clip, a_min=1e-300, a_max=1.0 - 2.0**-53), step(logit)]
FINITE = step(np.clip, a_min=-LARGEST, a_max=LARGEST)
PROBABILITY, COLUMN = step(expit), step(np.expand_dims, axis=1)


def as_sklearn(rule: FixedRule) -> Any:
    """Return a fitted classifier of scikit-learn that predicts as the rule does."""
    labels = rule.labels
    if labels.kind == "multiclass":
        margins = np.diag(rule.gain), -rule.gain * rule.threshold
        tail = linear_model(*margins, labels.classes, LinearSVC)
        made = make_pipeline(*steps_of(rule, range(len(labels.classes))), tail)
    elif labels.is_multilabel:
        made = MultiOutputClassifier(FixedThresholdClassifier(LogisticRegression()))
        made.estimators_ = [_one_label(rule, j, np.array([0, 1]), 1) for j in labels.classes]
        made.classes_ = [np.array([0, 1])] * len(made.estimators_)
    elif len(labels.classes) == 1:
        made = DummyClassifier().fit(labels.classes[:, None], labels.classes)
    else:
        made = _one_label(rule, 0, labels.classes, labels.positive)
    names = [str(text) for _, text, _ in pickletools.genops(dumps(made, protocol=3)) if text]
    left = sorted({name.split()[-1] for name in names if name.startswith("argmaxf")})
    if left:
        raise ValueError(
            f"scikit-learn has nothing in place of {', '.join(left)}: freeze a classifier of "
            "scikit-learn's own parts, or export the predictions"
        )
    return made


def _one_label(rule: FixedRule, label: int, classes: Any, positive: Any) -> Any:
    """Return a classifier for one label, with its threshold."""
    column, upwards = rule.columns()[0][label], positive == classes[-1]
    score, method = column.scores[0], "decision_function" if rule.on_scores else "predict_proba"
    plain = Column([Score(score.model, method, place=score.place, sign=score.sign)], [])
    its_own = rule.odds is None and len(rule.members) == 1 and column == plain
    if its_own and np.array_equal(score.model.classes_, classes):
        base = without_argmaxf(score.model)
    else:
        end = linear_model([1.0 if upwards else -1.0], 0.0, classes)
        base = make_pipeline(*steps_of(rule, [label]), *([] if rule.on_scores else LOG_ODDS), end)
    return FixedThresholdClassifier(
        FrozenEstimator(base),
        threshold=float(rule.threshold[label]),
        pos_label=positive,
        response_method=method,
    )


def steps_of(rule: FixedRule, labels: Sequence[int]) -> Steps:
    """Return the steps from rows to what the thresholds of some labels are on."""
    n, competing = len(labels), rule.labels.kind == "multiclass"
    steps = _mean([_member([each[j] for j in labels], competing) for each in rule.columns()], n)
    if rule.odds is None:
        return steps
    odds = rule.odds[labels]
    if competing:
        return [*steps, _linear(np.diag(odds)), *SUMMING_TO_ONE]
    return [*steps, *LOG_ODDS, _linear(np.eye(n), np.log(odds)), PROBABILITY]


def _member(columns: Sequence[Column], competing: bool) -> Steps:
    """Return the steps from rows to the probability or score of each label by one member."""
    scores = sorted((s for c in columns for s in c.scores), key=lambda s: s.constant is not None)
    answers: dict[Any, list[Score]] = {}  # scores that are columns of one answer; any for constants
    for score in scores:
        key: Any = id(score.model), answering(score.model, score.method), score.output
        key = key if score.constant is None else next(iter(answers), key)
        answers.setdefault(key, []).append(score)
    place = {id(s): i for i, s in enumerate(chain.from_iterable(answers.values()))}
    steps = _side_by_side(map(_answer, answers.values()))
    parts = [[_only([place[id(s)] for s in c.scores]), *_column(c)] for c in columns]
    calibrated = any(column.curves or column.logistic for column in columns)
    return [*steps, *_side_by_side(parts), *(SUMMING_TO_ONE if competing and calibrated else [])]


def _answer(scores: Sequence[Score]) -> Steps:
    """Return the steps from rows to scores that are columns of one answer of a model."""
    first = scores[0]
    method, classes = answering(first.model, first.method), first.model.classes_
    steps: Steps = [step(getattr(without_argmaxf(first.model), method))]
    if first.output is not None:
        steps, classes = [*steps, step(itemgetter(first.output))], classes[first.output]
    flat = method == "decision_function" and first.place is None and len(classes) == 2
    steps += [COLUMN] * flat + [FINITE] * (method == "predict_log_proba")
    coef, shift = np.zeros((len(scores), 1 if flat else len(classes))), np.zeros(len(scores))
    for row, score in enumerate(scores):
        place = score.place or 0
        if score.constant is not None:
            shift[row] = np.clip(score.constant, -LARGEST, LARGEST)
        else:
            coef[row, place] = score.sign
        if score.constant is None and score.method == "log_odds":
            coef[row, 1 - place] = -score.sign
    return [*steps, _linear(coef, shift)]


def _column(column: Column) -> Steps:
    """Return the steps from the scores of a label to its probability, or its score."""
    n = len(column.scores)
    mean = _linear(np.full((1, n), 1.0 / n))
    if not column.curves:
        return [mean, *([PROBABILITY] * column.logistic)]
    curves = _side_by_side([_only([i]), *_curve(c)] for i, c in enumerate(column.curves))
    # As `break_ties` orders rows of equal probability: times 1 - TIE / 2 (1 - s / (1 + |s|)).
    with_one, lower = _linear([[1.0], [0.0]], [0, 1.0]), _linear([[TIE / 2, 0.0]], [1 - TIE / 2])
    both = _side_by_side([[*curves, mean], [mean, with_one, Normalizer("l1"), lower]])
    return [*both, step(np.prod, axis=1, keepdims=True)]


def _curve(curve: Any) -> Steps:
    """Return the steps from a score to its probability."""
    ((form, numbers),) = curve_data(curve).items()
    if form == "isotonic":
        return [step(curve.predict), COLUMN]
    if form == "sigmoid":
        return [_linear([[numbers["slope"]]], [numbers["intercept"]]), PROBABILITY]
    return []


def steps_of_calibrated(model: CalibratedClassifierCV) -> Steps:
    """Return the steps from rows to the probabilities of a calibrated classifier."""
    tables = []
    for part in model.calibrated_classifiers_:
        scored, n = hasattr(part.estimator, "decision_function"), len(part.calibrators)
        method = getattr(part.estimator, "decision_function" if scored else "predict_proba")
        places = range(n) if n > 1 else [-1]
        curves = [[_only([i]), *_curve(c)] for i, c in zip(places, part.calibrators, strict=True)]
        both = SUMMING_TO_ONE if n > 1 else [_linear([[-1.0], [1.0]], [1.0, 0.0])]
        answer = [step(method), *[COLUMN] * (scored and n == 1)]
        tables.append([*answer, *_side_by_side(curves), *both])
    return _mean(tables, len(model.classes_))


def _mean(tables: Sequence[Steps], n: int) -> Steps:
    """Return the steps to the mean of several tables of n columns."""
    m = len(tables)
    mean = [_linear(np.hstack([np.eye(n) / m] * m))] if m > 1 else []
    return [*_side_by_side(tables), *mean]


def _side_by_side(parts: Iterable[Steps]) -> Steps:
    """Return the steps to the columns of several rows of steps.

    They are what a stack has fitted, not its parameters: scikit-learn prints and inspects
    parameters, which takes exponential time for nested pipelines.
    """
    first, *others = parts
    if not others:
        return first
    from sklearn.ensemble import StackingRegressor  # loads slowly

    stack = StackingRegressor([])
    stack.estimators_ = [make_pipeline(*each) for each in [first, *others]]
    stack.stack_method_ = ["transform"] * len(stack.estimators_)
    return [stack]


def _only(places: Sequence[int]) -> FunctionTransformer:
    return step(np.take, indices=places, axis=1)


def _linear(coef: Any, intercept: Any = 0.0) -> FunctionTransformer:
    """Return a transformer of a table to linear combinations of its columns."""
    model = LinearRegression()
    model.coef_, model.intercept_ = np.asarray(coef), np.asarray(intercept)
    return step(model.predict)
