"""import argmaxf.onnx: skl2onnx then converts classifiers with fixed thresholds.

The models are converted by skl2onnx; calibration, thresholds and labels are computed from their
scores in double precision. Labels are those of `predict`, but for rows whose score lies within the
rounding of the model's own arithmetic (float32, unless the inputs are doubles) of the threshold.
Each classifier has two outputs: labels, and probabilities (margins where there are none).

Examples
--------
>>> import numpy as np
>>> from sklearn.datasets import make_classification
>>> from sklearn.linear_model import LogisticRegression
>>> from argmaxf import ExpectedFClassifier
>>> X, y = make_classification(500, weights=[0.9], random_state=0)
>>> frozen = ExpectedFClassifier(LogisticRegression()).fit(X, y).freeze()
>>> import argmaxf.onnx  # doctest: +SKIP
>>> from skl2onnx import to_onnx  # doctest: +SKIP
>>> data = to_onnx(frozen, X[:1].astype(np.float32)).SerializeToString()  # doctest: +SKIP
"""

from __future__ import annotations

from copy import copy
from functools import reduce
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import Pipeline

import argmaxf.comparison  # noqa: F401  so that all classifiers are known
from argmaxf.estimators.calibration import TIE, curve_data
from argmaxf.estimators.fixed_rule import LARGEST, Column, FixedRule, without_argmaxf
from argmaxf.estimators.meta import FClassifier
from argmaxf.estimators.scores import Score

try:
    from skl2onnx import update_registered_converter
    from skl2onnx.algebra import onnx_ops as ops
    from skl2onnx.algebra.onnx_operator import OnnxSubEstimator
    from skl2onnx.common.data_types import (
        DoubleTensorType,
        FloatTensorType,
        Int64TensorType,
        StringTensorType,
    )
except ImportError:
    message = "argmaxf.onnx needs a package: pip install 'argmaxf[onnx]'"
    raise ImportError(message) from None

FLOAT, INT64, DOUBLE = 1, 7, 11  # element types of ONNX
__all__: list[str] = []


class Graph:
    """The graph of one classifier: its rule, in operators of ONNX."""

    def __init__(self, rule: FixedRule, scope: Any, operator: Any, container: Any) -> None:
        self.rule = rule
        self.inputs = tuple(operator.inputs)
        self.container = container
        self.version = container.target_opset
        self.scope = scope
        self.answers: dict[Any, Any] = {}  # of models, by what was asked
        self.kept: list[Any] = []  # options are known by the addresses of models

    def op(self, name: str, *inputs: Any, **how: Any) -> Any:
        """Return an operator of ONNX on other operators and arrays."""
        return getattr(ops, f"Onnx{name}")(*inputs, op_version=self.version, **how)

    def outputs(self) -> tuple[Any, Any]:
        """Return labels and probabilities, or margins where there are no probabilities."""
        rule = self.rule
        members = [self.member(columns) for columns in rule.members]
        values = self.mean(members)
        if rule.odds is not None:
            values = self.at_another_rate(values)
        if rule.labels.kind == "multiclass":
            margins = self.op("Mul", self.op("Sub", values, rule.threshold[None]), rule.gain[None])
            place = self.op("ArgMax", margins, axis=1, keepdims=0)
            shown = margins if rule.on_scores else values
            return self.op("Gather", self.names(rule.labels.classes), place), shown
        selected = self.op("GreaterOrEqual", values, rule.threshold[None])
        if rule.on_scores:
            values = self.op("Sub", values, rule.threshold[None])
        if rule.labels.is_multilabel:
            return self.op("Cast", selected, to=INT64), values
        others = rule.labels.classes[rule.labels.classes != rule.labels.positive]
        both = np.array([*others[:1], rule.labels.positive][-2:])
        both = both if len(both) == 2 else both.repeat(2)
        flat = self.op("Reshape", self.op("Cast", selected, to=INT64), np.array([-1]))
        label = self.op("Gather", self.names(both), flat)
        if rule.on_scores:
            return label, values
        pair = [self.op("Sub", np.array([1.0]), values), values]
        if rule.labels.positive != rule.labels.classes[-1]:
            pair.reverse()
        return label, self.op("Concat", *pair, axis=1)

    def names(self, classes: Any) -> Any:
        """Return classes as ONNX has them: numbers of 64 bits, or texts."""
        return classes.astype(np.int64 if classes.dtype.kind in "biu" else np.str_)

    def mean(self, values: list[Any]) -> Any:
        """Return the mean of several tensors."""
        total = reduce(lambda a, b: self.op("Add", a, b), values)
        return total if len(values) == 1 else self.op("Div", total, np.array([float(len(values))]))

    def member(self, columns: list[Column]) -> Any:
        """Return the probabilities or scores of all labels, (n, n_columns)."""
        table = self.op("Concat", *(self.column(column) for column in columns), axis=1)
        competing = self.rule.labels.kind == "multiclass"
        calibrated = any(column.curves or column.logistic for column in columns)
        return self.sum_to_one(table, len(columns)) if competing and calibrated else table

    def sum_to_one(self, table: Any, n: int) -> Any:
        """Divide rows by their sums; classes of a row of zeros are equally probable."""
        axes = np.array([1])
        total = self.op("ReduceSum", table, axes, keepdims=1)
        empty = self.op("Equal", total, np.array([0.0]))
        whole = self.op("Where", empty, np.array([1.0]), total)
        return self.op("Where", empty, np.array([1.0 / n]), self.op("Div", table, whole))

    def at_another_rate(self, proba: Any) -> Any:
        """Move probabilities to the rate in deployment."""
        odds = np.asarray(self.rule.odds)[None]
        moved = self.op("Mul", proba, odds)
        if self.rule.labels.kind == "multiclass":
            return self.sum_to_one(moved, odds.size)
        rest = self.op("Sub", np.array([1.0]), proba)
        return self.op("Div", moved, self.op("Add", moved, rest))

    def column(self, column: Column) -> Any:
        """Return the probability or the score of one label, (n, 1)."""
        scores = [self.score(score) for score in column.scores]
        if not column.curves:
            mean = self.mean(scores)
            return self.op("Sigmoid", mean) if column.logistic else mean
        pairs = zip(column.curves, scores, strict=True)
        proba = self.mean([self.curve(curve, score) for curve, score in pairs])
        mean = self.mean(scores)  # which orders rows of equal probability
        place = self.op("Div", mean, self.op("Add", self.op("Abs", mean), np.array([1.0])))
        lower = self.op("Mul", self.op("Sub", place, np.array([1.0])), np.array([TIE / 2.0]))
        return self.op("Mul", proba, self.op("Add", lower, np.array([1.0])))

    def curve(self, curve: Any, score: Any) -> Any:
        """Return the probabilities of scores by one curve of calibration."""
        ((form, known),) = curve_data(curve).items()
        if form == "sigmoid":
            line = self.op("Mul", score, np.array([known["slope"]]))
            return self.op("Sigmoid", self.op("Add", line, np.array([known["intercept"]])))
        x, y = np.array(known["x"], dtype=np.float64), np.array(known["y"], dtype=np.float64)
        if len(x) == 1:
            x, y = np.r_[x, x + 1.0], np.r_[y, y]
        inside = self.op("Min", self.op("Max", score, x[:1]), x[-1:])
        below = self.op("Cast", self.op("Less", x[None], inside), to=INT64)
        place = self.op("ReduceSum", below, np.array([1]), keepdims=1)
        low = self.op("Max", self.op("Sub", place, np.array([1])), np.array([0]))
        slope = self.op("Gather", np.diff(y) / np.diff(x), low)
        right = self.op("Sub", inside, self.op("Gather", x[:-1], low))
        line = self.op("Add", self.op("Mul", slope, right), self.op("Gather", y[:-1], low))
        return self.op("Min", self.op("Max", line, np.array([0.0])), np.array([1.0]))

    def score(self, score: Score) -> Any:
        """Return a score of a model, (n, 1)."""
        if score.constant is not None:
            first = self.op("Gather", self.op("Shape", self.inputs[0]), np.array([0]))
            shape = self.op("Concat", first, np.array([1]), axis=0)
            number = np.clip([[score.constant]], -LARGEST, LARGEST)
            return self.op("Expand", number, shape)
        answer = self.answer(score.model, score.method, self.inputs)
        if score.output is not None:
            answer = self.op("Gather", answer, np.array(score.output), axis=0)
        if score.place is None:  # the last of one or two columns
            table = self.op("Gather", answer, np.array([-1]), axis=1)
            return table if score.sign > 0 else self.op("Neg", table)
        column = self.op("Gather", answer, np.array([score.place]), axis=1)
        if score.method != "log_odds":
            return column
        other = self.op("Gather", answer, np.array([1 - score.place]), axis=1)
        return self.op("Sub", column, other)

    def answer(self, model: Any, method: str, inputs: tuple[Any, ...]) -> Any:
        """Return what a method of a model gives, in double precision."""
        key = id(model), method, *map(id, inputs)
        if key not in self.answers:
            self.answers[key] = self.op("Cast", self.classifier(model, method, inputs), to=DOUBLE)
        return self.answers[key]

    def classifier(self, model: Any, method: str, inputs: tuple[Any, ...]) -> Any:
        """Return the scores or probabilities of a model of scikit-learn, by its converter."""
        while isinstance(model, FrozenEstimator | Pipeline):
            if isinstance(model, FrozenEstimator):
                model = model.estimator
                continue
            before, model = model[:-1], model[-1]
            key = tuple(id(step) for step in before)  # what several models share is computed once
            if len(before) and key not in self.answers:
                self.answers[key] = OnnxSubEstimator(before, *inputs, op_version=self.version)
            inputs = (self.answers[key],) if len(before) else inputs
        model = without_argmaxf(model)
        if isinstance(model, CalibratedClassifierCV):
            members = [self.calibrated(each, inputs) for each in model.calibrated_classifiers_]
            return self.mean(members)
        if method == "log_odds" or (
            type(model) in (GaussianNB, MultinomialNB) and inputs[1:] == ()
        ):
            joint = self.joint_log_proba(model, self.op("Cast", inputs[0], to=DOUBLE))
            return joint if method == "log_odds" else self.op("Softmax", joint, axis=1)
        scores = method == "decision_function"
        linear = getattr(type(model), method, None) is LogisticRegression.decision_function
        if linear and len(inputs) == 1:
            product = self.op(
                "MatMul", self.op("Cast", inputs[0], to=DOUBLE), np.float64(model.coef_).T
            )
            return self.op("Add", product, np.atleast_2d(np.asarray(model.intercept_, dtype=float)))
        model = copy(model)  # with options of its own
        self.kept.append(model)
        raw = self.container.has_options(model, "raw_scores")
        if scores and not raw and hasattr(model, "predict_proba"):
            raise ValueError(
                f"skl2onnx has no decision_function of {type(model).__name__}; calibrate it by "
                "CalibratedClassifierCV, which gives probabilities"
            )
        known = {"zipmap": False, "raw_scores": True} if scores else {"zipmap": False}
        options = {k: v for k, v in known.items() if self.container.has_options(model, k)}
        for each in (self.container, self.scope):
            each.add_options(id(model), options)
        return OnnxSubEstimator(model, *inputs, op_version=self.version)[1]

    def joint_log_proba(self, model: Any, X: Any) -> Any:
        """Return log P(x, class) of naive Bayes: its probabilities round to 0 and 1 in float32."""
        if type(model) is MultinomialNB:
            product = self.op("MatMul", X, np.float64(model.feature_log_prob_).T)
            return self.op("Add", product, np.atleast_2d(np.float64(model.class_log_prior_)))
        if type(model) is not GaussianNB:
            raise ValueError(
                f"scores of {type(model).__name__} cannot be exported; calibrate it by "
                "CalibratedClassifierCV, which gives probabilities"
            )
        columns = []
        fitted = (np.float64(a) for a in (model.theta_, model.var_, model.class_prior_))
        for mean, var, prior in zip(*fitted, strict=True):
            off = self.op("Sub", X, mean[None])
            square = self.op("MatMul", self.op("Mul", off, off), -0.5 / var[:, None])
            constant = np.log(prior) - 0.5 * np.log(2.0 * np.pi * var).sum()
            columns.append(self.op("Add", square, np.array([constant])))
        return self.op("Concat", *columns, axis=1)

    def calibrated(self, member: Any, inputs: tuple[Any, ...]) -> Any:
        """Return the probabilities of a part of scikit-learn's calibrated classifier.

        skl2onnx gives probabilities instead of scores to the curves if the model is a pipeline.
        """
        model, curves = member.estimator, member.calibrators
        scores = hasattr(model, "decision_function")
        table = self.answer(model, "decision_function" if scores else "predict_proba", inputs)
        places = range(len(curves)) if len(curves) > 1 else [-1]
        columns = [self.op("Gather", table, np.array([j]), axis=1) for j in places]
        proba = [self.curve(c, column) for c, column in zip(curves, columns, strict=True)]
        if len(proba) > 1:
            return self.sum_to_one(self.op("Concat", *proba, axis=1), len(proba))
        return self.op("Concat", self.op("Sub", np.array([1.0]), proba[0]), proba[0], axis=1)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    graph = Graph(operator.raw_operator.fixed_rule(), scope, operator, container)
    label, values = graph.outputs()
    kind = DOUBLE if isinstance(operator.outputs[1].type, DoubleTensorType) else FLOAT
    made = graph.op("Identity", label, output_names=operator.outputs[:1])
    made.add_to(scope, container)
    made = graph.op("Cast", values, to=kind, output_names=operator.outputs[1:])
    made.add_to(scope, container)


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare both outputs; a classifier without fixed thresholds is refused here."""
    labels = model.fixed_rule().labels
    operator = scope.declare_local_operator(_alias(type(model)), model)
    operator.inputs = inputs
    texts = labels.classes.dtype.kind not in "biu" and not labels.is_multilabel
    double = all(isinstance(each.type, DoubleTensorType) for each in inputs)
    kinds = {"label": StringTensorType if texts else Int64TensorType}
    kinds["probabilities"] = DoubleTensorType if double else FloatTensorType
    for name, kind in kinds.items():
        operator.outputs.append(scope.declare_local_variable(name, kind()))
    return operator.outputs


def _shapes(operator: Any) -> None:
    labels = operator.raw_operator.fixed_rule().labels
    n = operator.inputs[0].get_first_dimension()
    width = 2 if labels.is_binary else len(labels.classes)
    operator.outputs[0].type.shape = [n, width] if labels.is_multilabel else [n]
    operator.outputs[1].type.shape = [n, None if labels.is_binary else width]


def _alias(kind: type) -> str:
    return f"Argmaxf{kind.__name__}"


def _register(kind: type) -> None:
    """Register a classifier and all that derive from it."""
    options = {"zipmap": [False], "output_class_labels": [False], "nocl": [False, True]}
    how = {"parser": _parse, "options": options}
    update_registered_converter(kind, _alias(kind), _shapes, _convert, **how)
    derived: list[type] = kind.__subclasses__()
    for each in derived:
        _register(each)


_register(FClassifier)
