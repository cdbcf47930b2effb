"""import argmaxf.onnx: skl2onnx then converts classifiers with fixed thresholds.

The models are converted by skl2onnx; calibration, thresholds and labels are computed from their
scores in double precision. Labels are those of `predict`, but for rows whose score lies within the
rounding of the model's own arithmetic (float32, unless the inputs are doubles) of the threshold.
Each classifier has two outputs: labels, and probabilities (margins where there are none).
docs/howto/deploying.md has an example.
"""

from __future__ import annotations

from copy import copy
from operator import itemgetter
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import StackingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

import argmaxf.comparison  # noqa: F401  so that all classifiers are known
from argmaxf.estimators.fixed_rule import (
    FixedRule,
    Steps,
    steps_of,
    steps_of_calibrated,
    without_argmaxf,
)
from argmaxf.estimators.meta import FClassifier

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
    """The graph of one classifier: the steps of `to_sklearn`, in operators of ONNX."""

    def __init__(self, rule: FixedRule, scope: Any, operator: Any, container: Any) -> None:
        self.rule = rule
        self.inputs = tuple(operator.inputs)
        self.scope, self.container = scope, container
        self.version = container.target_opset
        self.transformed: dict[Any, Any] = {}  # what several models have before them
        self.kept: list[Any] = []  # options are known by the addresses of models

    def op(self, name: str, *inputs: Any, **how: Any) -> Any:
        """Return an operator of ONNX on other operators and arrays."""
        return getattr(ops, f"Onnx{name}")(*inputs, op_version=self.version, **how)

    def outputs(self) -> tuple[Any, Any]:
        """Return labels and probabilities, or margins where there are no probabilities."""
        rule, labels = self.rule, self.rule.labels
        # Numbers of 64 bits, or texts
        classes = labels.classes.astype(np.int64 if labels.classes.dtype.kind in "biu" else np.str_)
        values = self.follow(steps_of(rule, range(len(labels.names))), self.inputs)
        margins = self.op("Sub", values, rule.threshold[None])
        if labels.kind == "multiclass":
            margins = self.op("Mul", margins, rule.gain[None])
            place = self.op("ArgMax", margins, axis=1, keepdims=0)
            return self.op("Gather", classes, place), margins if rule.on_scores else values
        selected = self.op("GreaterOrEqual", values, rule.threshold[None])
        selected = self.op("Cast", selected, to=INT64)
        if labels.is_multilabel:
            return selected, margins if rule.on_scores else values
        side = 1 if labels.positive == labels.classes[-1] else -1
        place = self.op("Reshape", selected, np.array([-1]))
        label = self.op("Gather", classes[[0, -1]][::side], place)
        both = self.linear(values, [[-side], [side]], [1.0, 0.0][::side])
        return label, margins if rule.on_scores else both

    def follow(self, steps: Steps, table: Any) -> Any:
        """Return what steps make of a table; the first ones take the inputs."""
        for step in steps:
            if isinstance(step, StackingRegressor):
                rows = [self.follow(part.named_steps.values(), table) for part in step.estimators_]
                table = self.op("Concat", *rows, axis=1)
            elif isinstance(step, Normalizer):
                size = self.op("ReduceSum", self.op("Abs", table), np.array([1]), keepdims=1)
                table = self.op("Div", table, size)
            else:
                table = self.function(step.func, step.kw_args or {}, table)
        return table

    def function(self, function: Any, how: dict[str, Any], table: Any) -> Any:
        """Return a function of a table, or what a method of a model gives for the inputs."""
        model = getattr(function, "__self__", None)
        if isinstance(model, LinearRegression):
            return self.linear(table, model.coef_, model.intercept_)
        if isinstance(model, IsotonicRegression):
            return self.curve(model, table)
        if model is not None:
            return self.op("Cast", self.answer(model, function.__name__, table), to=DOUBLE)
        if isinstance(function, itemgetter):
            place: Any = function.__reduce__()[1]
            return self.op("Gather", table, np.array(place[0]), axis=0)
        if function in (np.take, np.expand_dims):  # the last of one or two columns of scores
            return self.op("Gather", table, np.array(how.get("indices", [-1])), axis=1)
        if function is np.prod:
            both = (self.op("Gather", table, np.array([i]), axis=1) for i in (0, 1))
            return self.op("Mul", *both)
        if function is np.clip:
            table = self.op("Max", table, np.array([how["a_min"]]))
            most = how["a_max"]
            return table if most is None else self.op("Min", table, np.array([most]))
        if function is logit:
            rest = self.op("Sub", np.array([1.0]), table)
            return self.op("Log", self.op("Div", table, rest))
        return self.op("Sigmoid", table)

    def linear(self, table: Any, coef: Any, intercept: Any) -> Any:
        """Return linear combinations of columns, in double precision."""
        matrix, row = np.asarray(coef, np.float64).T, np.asarray(intercept, np.float64)
        product = self.op("MatMul", self.op("Cast", table, to=DOUBLE), matrix)
        return self.op("Add", product, np.atleast_2d(row))

    def curve(self, curve: Any, score: Any) -> Any:
        """Return the probabilities of scores by an isotonic curve."""
        x, y = np.asarray([curve.X_thresholds_, curve.y_thresholds_], dtype=np.float64)
        if len(x) == 1:
            x, y = np.r_[x, x + 1.0], np.r_[y, y]
        inside = self.op("Min", self.op("Max", score, x[:1]), x[-1:])
        below = self.op("Cast", self.op("Less", x[None], inside), to=INT64)
        place = self.op("ReduceSum", below, np.array([1]), keepdims=1)
        low = self.op("Max", self.op("Sub", place, np.array([1])), np.array([0]))
        slope = self.op("Gather", np.diff(y) / np.diff(x), low)
        right = self.op("Sub", inside, self.op("Gather", x[:-1], low))
        return self.op("Add", self.op("Mul", slope, right), self.op("Gather", y[:-1], low))

    def answer(self, model: Any, method: str, inputs: tuple[Any, ...]) -> Any:
        """Return the scores or probabilities of a model of scikit-learn, by its converter."""
        model = without_argmaxf(model)
        while isinstance(model, FrozenEstimator | Pipeline):
            if isinstance(model, Pipeline) and len(model) > 1:
                key = tuple(map(id, model[:-1]))  # what several models share is computed once
                if key not in self.transformed:
                    made = OnnxSubEstimator(model[:-1], *inputs, op_version=self.version)
                    self.transformed[key] = made
                inputs = (self.transformed[key],)
            model = model[-1] if isinstance(model, Pipeline) else model.estimator
        if isinstance(model, CalibratedClassifierCV):  # skl2onnx takes pipelines in it for others
            return self.follow(steps_of_calibrated(model), inputs)
        if isinstance(model, DummyClassifier):  # of labels with one value
            rows = self.op("Gather", self.op("Shape", inputs[0]), np.array([0]))
            shape = self.op("Concat", rows, np.array([len(model.classes_)]), axis=0)
            return self.op("Expand", np.asarray(model.class_prior_, np.float64)[None], shape)
        known = type(model) in (GaussianNB, MultinomialNB) and len(inputs) == 1
        if known or method == "predict_log_proba":
            joint = self.joint_log_proba(model, inputs[0])
            return self.op("Softmax", joint, axis=1) if method == "predict_proba" else joint
        scores = method == "decision_function"
        linear = getattr(type(model), method, None) is LogisticRegression.decision_function
        if linear and len(inputs) == 1:
            return self.linear(inputs[0], model.coef_, model.intercept_)
        model = copy(model)  # with options of its own
        self.kept.append(model)
        raw = self.container.has_options(model, "raw_scores")
        if scores and not raw and hasattr(model, "predict_proba"):
            raise ValueError(
                f"skl2onnx has no decision_function of {type(model).__name__}; calibrate it by "
                "CalibratedClassifierCV, which gives probabilities"
            )
        wanted = {"zipmap": False, "raw_scores": True} if scores else {"zipmap": False}
        options = {k: v for k, v in wanted.items() if self.container.has_options(model, k)}
        for each in (self.scope, self.container):
            each.add_options(id(model), options)
        return OnnxSubEstimator(model, *inputs, op_version=self.version)[1]

    def joint_log_proba(self, model: Any, X: Any) -> Any:
        """Return log P(x, class) of naive Bayes: its probabilities round to 0 and 1 in float32."""
        if type(model) is MultinomialNB:
            return self.linear(X, model.feature_log_prob_, model.class_log_prior_)
        if type(model) is not GaussianNB:
            raise ValueError(
                f"scores of {type(model).__name__} cannot be exported; calibrate it by "
                "CalibratedClassifierCV, which gives probabilities"
            )
        columns, X = [], self.op("Cast", X, to=DOUBLE)
        fitted = (np.asarray(a, np.float64) for a in (model.theta_, model.var_, model.class_prior_))
        for mean, var, prior in zip(*fitted, strict=True):
            off = self.op("Sub", X, mean[None])
            constant = np.log(prior) - 0.5 * np.log(2.0 * np.pi * var).sum()
            columns.append(self.linear(self.op("Mul", off, off), -0.5 / var[None], constant))
        return self.op("Concat", *columns, axis=1)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    graph = Graph(operator.raw_operator.fixed_rule(), scope, operator, container)
    label, values = graph.outputs()
    kind = DOUBLE if isinstance(operator.outputs[1].type, DoubleTensorType) else FLOAT
    label = graph.op("Identity", label, output_names=operator.outputs[:1])
    values = graph.op("Cast", values, to=kind, output_names=operator.outputs[1:])
    for made in (label, values):
        made.add_to(scope, container)


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare both outputs; a classifier without fixed thresholds is refused here."""
    labels = model.fixed_rule().labels
    operator = scope.declare_local_operator(f"Argmaxf{type(model).__name__}", model)
    operator.inputs = inputs
    texts = labels.classes.dtype.kind not in "biu" and not labels.is_multilabel
    double = all(isinstance(each.type, DoubleTensorType) for each in inputs)
    width = None if labels.is_binary else len(labels.classes)
    shape = [None, width] if labels.is_multilabel else [None]
    label = (StringTensorType if texts else Int64TensorType)(shape)
    proba = (DoubleTensorType if double else FloatTensorType)([None, width])
    for name, kind in (("label", label), ("probabilities", proba)):
        operator.outputs.append(scope.declare_local_variable(name, kind))
    return operator.outputs


def _register(kind: type) -> None:
    """Register a classifier and all that derive from it."""
    options = {"zipmap": [False], "output_class_labels": [False], "nocl": [False, True]}
    how = {"parser": _parse, "options": options}
    update_registered_converter(kind, f"Argmaxf{kind.__name__}", lambda _: None, _convert, **how)
    derived: list[type] = kind.__subclasses__()
    for each in derived:
        _register(each)


_register(FClassifier)
