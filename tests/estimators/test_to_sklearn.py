"""Fixed thresholds as scikit-learn's own objects: the same labels, without argmaxf."""

import os
import pickle
import subprocess
import sys
import sysconfig
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_wine,
    make_classification,
    make_multilabel_classification,
)
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from argmaxf import (
    AutoFClassifier,
    BlendFClassifier,
    CostSensitiveFClassifier,
    ExpectedFClassifier,
    JointFClassifier,
    SoftFClassifier,
    ThresholdFClassifier,
)
from argmaxf.estimators.meta import PlainClassifier

LINEAR = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
FOREST = RandomForestClassifier(20, min_samples_leaf=2, random_state=0)
MODELS = {
    "linear": LINEAR,
    "forest": FOREST,
    "bayes": GaussianNB(),
    "svm": make_pipeline(StandardScaler(), LinearSVC(random_state=0)),
    "calibrated": CalibratedClassifierCV(LINEAR, cv=3),
    "boosted": GradientBoostingClassifier(n_estimators=20, random_state=0),
}
WAYS = {
    "threshold": lambda model: ThresholdFClassifier(model),
    "expected": lambda model: ExpectedFClassifier(model),
    "sigmoid": lambda model: ExpectedFClassifier(model, calibration="sigmoid"),
    "blend": lambda model: BlendFClassifier(model),
    "plain": lambda model: PlainClassifier(model),
}
FULL = ["threshold", "expected", "blend"]


def binary():
    return load_breast_cancer(return_X_y=True)


def multiclass():
    return load_wine(return_X_y=True)


def multilabel():
    X, Y = make_multilabel_classification(400, 12, n_classes=4, n_labels=2, random_state=0)
    return X + np.random.default_rng(0).normal(size=X.shape), Y


TARGETS = {"binary": binary, "multiclass": multiclass, "multilabel": multilabel}


def halves(X, y):
    order = np.random.default_rng(1).permutation(len(y))
    half = len(y) // 2
    return X[order[:half]], y[order[:half]], X[order[half:]]


def frozen(classifier, X, y, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = classifier.fit(X, y)
        return fitted.freeze(**how) if hasattr(fitted, "freeze") else fitted


def restored_without_argmaxf(made, X, folder):
    """What a process predicts by the pickle, in an environment without argmaxf."""
    for each in Path(sysconfig.get_path("purelib")).iterdir():
        if "argmaxf" not in each.name and each.suffix != ".pth":
            (folder / each.name).symlink_to(each)
    code = (
        "import importlib.util, pickle, sys\n"
        "assert importlib.util.find_spec('argmaxf') is None\n"
        "model, X = pickle.load(sys.stdin.buffer)\n"
        "sys.stdout.buffer.write(pickle.dumps(model.predict(X)))\n"
    )
    command, env = [sys.executable, "-S", "-c", code], os.environ | {"PYTHONPATH": str(folder)}
    given = pickle.dumps((made, X))
    run = subprocess.run(command, input=given, env=env, cwd=folder, capture_output=True, check=True)
    return pickle.loads(run.stdout)


CASES = [
    *((target, "linear", way) for target in ("binary", "multilabel") for way in WAYS),
    *(("binary", model, "expected") for model in MODELS if model != "linear"),
    *(("multiclass", "forest", way) for way in FULL),
    *(("multiclass", "bayes", way) for way in ("plain", "blend")),
    *(("multiclass", "svm", "threshold"), ("multiclass", "svm", "expected")),
    *(("multilabel", "bayes", "threshold"), ("multilabel", "forest", "blend")),
    *(("binary", "boosted", "threshold"), ("binary", "svm", "plain")),
]


@pytest.mark.parametrize(("target", "model", "way"), CASES)
def test_predictions_are_equal(target, model, way):
    X, y, X_new = halves(*TARGETS[target]())
    reference = {"X_reference": X_new} if model == "calibrated" else {}
    service = frozen(WAYS[way](MODELS[model]), X, y, **reference)
    made = service.to_sklearn()
    assert b"argmaxf" not in pickle.dumps(made)
    np.testing.assert_array_equal(made.predict(X_new), service.predict(X_new))
    if target == "binary" and hasattr(service, "predict_proba"):
        np.testing.assert_array_equal(made.classes_, service.classes_)
        expected = service.predict_proba(X_new)
        np.testing.assert_allclose(made.predict_proba(X_new), expected, rtol=1e-8, atol=1e-9)


def test_a_pickle_predicts_where_argmaxf_is_not_installed(tmp_path):
    X, y, X_new = halves(*binary())
    service = frozen(ExpectedFClassifier(LINEAR), X, y)
    found = restored_without_argmaxf(service.to_sklearn(), X_new, tmp_path)
    np.testing.assert_array_equal(found, service.predict(X_new))


def test_what_is_exported_prints_in_a_few_lines():
    X, y, _ = halves(*binary())
    made = frozen(BlendFClassifier(LINEAR), X, y).to_sklearn()
    assert "FrozenEstimator" in repr(made)  # once took longer than anyone waits
    assert len(repr(made)) < 2000


@pytest.mark.parametrize("pos_label", ["no", "yes"])
@pytest.mark.parametrize("way", FULL)
def test_either_class_can_be_the_positive_one(way, pos_label):
    X, y, X_new = halves(*binary())
    names = np.where(y == 1, "yes", "no")
    service = frozen(WAYS[way](LINEAR).set_params(pos_label=pos_label), X, names)
    made = service.to_sklearn()
    np.testing.assert_array_equal(made.predict(X_new), service.predict(X_new))
    expected = service.predict_proba(X_new)
    np.testing.assert_allclose(made.predict_proba(X_new), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("model", [SoftFClassifier(), make_pipeline(StandardScaler(), LINEAR)])
def test_linear_classifiers_and_the_choice_of_a_comparison(target, model):
    X, y, X_new = halves(*TARGETS[target]())
    if not isinstance(model, SoftFClassifier):
        model = AutoFClassifier(model)
    service = frozen(model, X, y)
    made = service.to_sklearn()
    np.testing.assert_array_equal(made.predict(X_new), service.predict(X_new))


@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize("model", ["forest", "neighbours", "linear"])
def test_models_that_hold_all_labels(average, model):
    X, y, X_new = halves(*multilabel())
    y[:, 3] = 0  # a label that is never seen
    y[:4, 2], y[4:, 2] = 1, 0  # and one too rare for folds
    models = {"forest": FOREST, "neighbours": KNeighborsClassifier(), "linear": LINEAR}
    service = frozen(ExpectedFClassifier(models[model], average=average), X, y)
    made = service.to_sklearn()
    np.testing.assert_array_equal(made.predict(X_new), service.predict(X_new))
    found = np.stack([each.predict_proba(X_new)[:, 1] for each in made.estimators_], axis=1)
    np.testing.assert_allclose(found, service.predict_proba(X_new), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(("target", "rate"), [("binary", 0.2), ("multiclass", [0.7, 0.2, 0.1])])
@pytest.mark.parametrize("way", ["expected", "blend", "threshold"])
def test_another_rate_of_positives(target, rate, way):
    X, y, X_new = halves(*TARGETS[target]())
    service = frozen(WAYS[way](LINEAR).set_params(deploy_rate=rate), X, y)
    made = service.to_sklearn()
    np.testing.assert_array_equal(made.predict(X_new), service.predict(X_new))


def test_rows_whose_classes_all_have_probability_zero():
    X, y, _ = halves(*multiclass())
    service = frozen(ExpectedFClassifier(FOREST, deploy_rate=[0.8, 0.1, 0.1]), X, y)
    X_far = np.random.default_rng(2).normal(size=(3000, X.shape[1])) * X.std(0) * 3 + X.mean(0)
    np.testing.assert_array_equal(service.to_sklearn().predict(X_far), service.predict(X_far))


def test_a_frozen_model_stays_as_it_is():
    X, y, X_new = halves(*load_digits(return_X_y=True))
    fitted = LogisticRegression(max_iter=5000).fit(X, y == 3)
    service = frozen(ThresholdFClassifier(FrozenEstimator(fitted)), X, y == 3)
    made = service.to_sklearn()
    assert made.estimator.estimator.estimator is fitted
    np.testing.assert_array_equal(made.predict(X_new), service.predict(X_new))


@pytest.mark.parametrize(
    ("classifier", "target", "message"),
    [
        (ExpectedFClassifier(LINEAR, average="samples"), "multilabel", "ExpectedFClassifier"),
        (
            JointFClassifier(LINEAR),
            "multilabel",
            "JointFClassifier decides rows or labels together",
        ),
        (CostSensitiveFClassifier(LINEAR, n_costs=2), "binary", "CostSensitiveFClassifier"),
    ],
)
def test_what_scikit_learn_cannot_express_is_refused(classifier, target, message):
    X, y, _ = halves(*TARGETS[target]())
    service = frozen(classifier, X, y)
    with pytest.raises(ValueError, match=message):
        service.to_sklearn()


@pytest.mark.parametrize("model", [LINEAR, FOREST, GaussianNB()])
@pytest.mark.parametrize("rate", [0.03, 0.2])
def test_a_limit_among_rows_of_equal_probability(model, rate):
    X, y, X_new = halves(*load_digits(return_X_y=True))
    service = frozen(ExpectedFClassifier(model, max_selected=rate), X, y == 3)
    np.testing.assert_array_equal(service.to_sklearn().predict(X_new), service.predict(X_new))


def test_a_calibration_by_an_isotonic_regression_of_ones_own():
    X, y, X_new = halves(*binary())
    curve = IsotonicRegression(out_of_bounds="clip")
    service = frozen(ExpectedFClassifier(LINEAR, calibration=curve), X, y)
    np.testing.assert_array_equal(service.to_sklearn().predict(X_new), service.predict(X_new))


def test_a_calibration_of_ones_own_is_refused_by_name():
    class Rounded(IsotonicRegression):
        def predict(self, T):
            return np.round(super().predict(T), 1)

    X, y = make_classification(400, random_state=0)
    service = frozen(ExpectedFClassifier(LINEAR, calibration=Rounded(out_of_bounds="clip")), X, y)
    with pytest.raises(ValueError, match="calibration by Rounded cannot be exported"):
        service.to_sklearn()


@pytest.mark.filterwarnings("ignore:y has one class only")
@pytest.mark.parametrize("only", ["a", 0, 1])
@pytest.mark.parametrize("classifier", [SoftFClassifier(), ThresholdFClassifier(GaussianNB())])
def test_a_target_with_one_class(classifier, only):
    X, y = np.arange(20.0)[:, None], np.full(20, only)
    service = classifier.fit(X, y).freeze().to_sklearn()
    assert service.predict(X).tolist() == y.tolist()


@pytest.mark.parametrize("target", TARGETS)
def test_a_threshold_behind_the_preprocessing_of_a_users_pipeline(target):
    X, y, X_new = halves(*TARGETS[target]())
    mine = make_pipeline(StandardScaler(), ThresholdFClassifier(LINEAR))
    service = frozen(AutoFClassifier(LINEAR, methods=[("mine", mine)], cv=3), X, y)
    np.testing.assert_array_equal(service.to_sklearn().predict(X_new), service.predict(X_new))
