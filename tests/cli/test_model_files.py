"""Model files for `argmaxf compare --estimator`: no code from a file is run, no file is opened."""

import contextlib
import functools
import html
import json
import re
import zipfile
from collections import OrderedDict

import numpy as np
import polars as pl
import pytest
import sklearn
from lightgbm import LGBMClassifier
from scipy.stats import loguniform
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, PairwiseKernel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, StratifiedKFold
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from xgboost import XGBClassifier

import argmaxf
from argmaxf.cli.app import run
from argmaxf.cli.models import load_classifier

skops_io = pytest.importorskip("skops.io")


def text_model(**options):
    """A pipeline that reads text."""
    return make_pipeline(CountVectorizer(**options), MultinomialNB())


def running(code):
    """A pipeline that executes a string when it is fitted: numpy.testing.measure runs it."""
    return text_model(tokenizer=np.testing.measure, token_pattern=None, stop_words=[code])


def in_columns(model):
    """The same inside a ColumnTransformer."""
    vectorizer = model.steps[0][1]
    return make_pipeline(ColumnTransformer([("text", vectorizer, "words")]), MultinomialNB())


WRAPPED = {
    "pipeline": lambda model: model,
    "columns": in_columns,
    "wrapper": argmaxf.ThresholdFClassifier,
    "search": lambda model: GridSearchCV(model, {"multinomialnb__alpha": [0.1, 1.0]}),
    "calibrated": CalibratedClassifierCV,
}


@pytest.mark.parametrize("wrapped", WRAPPED.values(), ids=WRAPPED)
def test_code_in_a_model_file_is_not_run(tmp_path, wrapped, capsys):
    owned = tmp_path / "owned"
    model = wrapped(running(f"open({str(owned)!r}, 'w').close()"))
    skops_io.dump(model, tmp_path / "m.skops")
    words = ["red apple", "green leaf"] * 20
    pl.DataFrame({"words": words, "y": [1, 0] * 20}).write_csv(tmp_path / "d.csv")
    command = ["compare", str(tmp_path / "d.csv"), "--target", "y", "--folds", "2"]
    assert run([*command, "--estimator", str(tmp_path / "m.skops")]) == 2
    assert "numpy.testing" in capsys.readouterr().err
    assert not owned.exists()


def hide(model, name, value):
    """Give an object an attribute in the place of a method."""
    vars(model)[name] = value
    return model


# Its trees would stay: warm starts keep them, and a search copies what is in its grid as it is.
GROWN = RandomForestClassifier(2, warm_start=True).fit([[0.0], [1.0]] * 5, [0, 1] * 5)
REFUSED = {
    "function of numpy": (FunctionTransformer(np.testing.measure), "numpy.testing"),
    "ufunc": (FunctionTransformer(np.log1p), r"func must be data .* never a function; got log1p"),
    "partial": (
        FunctionTransformer(functools.partial(np.sum, axis=0)),
        r"functools\.partial|numpy\.sum",
    ),
    "method": (FunctionTransformer(OneHotEncoder().fit), "OneHotEncoder.fit"),
    "kernel function": (SVC(kernel=np.dot), "numpy.dot"),
    "metric function": (
        KNeighborsClassifier(metric="pyfunc", metric_params={"func": np.subtract}),
        r"model\.metric_params\.func must be data",
    ),
    "function in a kernel": (
        GaussianProcessClassifier(PairwiseKernel(metric=np.subtract)),
        r"kernel\.metric must be data",
    ),
    "function in a grid": (
        GridSearchCV(SVC(), {"kernel": ["rbf", np.matmul]}),
        r"param_grid\.kernel must be data",
    ),
    "function in an array": (
        GridSearchCV(SVC(), {"kernel": np.array(["rbf", np.add], dtype=object)}),
        r"param_grid\.kernel must be data",
    ),
    "class": (CountVectorizer(tokenizer=list), r"tokenizer must not be a class, got builtins.list"),
    "hidden method": (hide(SVC(), "get_params", np.add), r"model\.get_params must be data"),
    "measure": (argmaxf.ThresholdFClassifier(SVC(), measure=np.multiply), r"model\.measure must"),
    "file names": (text_model(input="filename"), r"input must be 'content'.* got 'filename'"),
    "files": (text_model(input="file"), "got 'file'"),
    "file names in a wrapper": (
        argmaxf.ThresholdFClassifier(in_columns(text_model(input="filename"))),
        "input must be 'content'",
    ),
    "file names, hashed": (HashingVectorizer(input="filename"), "input must be 'content'"),
    "file names, tf-idf": (TfidfVectorizer(input="filename"), "input must be 'content'"),
    "file names in a grid": (
        GridSearchCV(text_model(), {"countvectorizer__input": ["filename"]}),
        "countvectorizer__input must be 'content'",
    ),
    "file names in an array": (
        GridSearchCV(text_model(), [{"countvectorizer__input": np.array(["filename"])}]),
        "countvectorizer__input must be 'content'",
    ),
    "folder of pickles": (
        make_pipeline(StandardScaler(), SVC(), memory="cache"),
        "memory must be None",
    ),
    "folder in a grid": (
        GridSearchCV(make_pipeline(SVC()), {"memory": ["cache"]}),
        "memory must be None",
    ),
    "distribution": (RandomizedSearchCV(SVC(), {"C": loguniform(0.1, 1)}), "rv_continuous_frozen"),
    "keeps what it learned": (FrozenEstimator(LogisticRegression()), "FrozenEstimator"),
    "file of LightGBM": (
        LGBMClassifier(forcedsplits_filename="splits.json"),
        "must not have the option forcedsplits_filename='splits.json'",
    ),
    "short name of LightGBM": (LGBMClassifier(fs="splits.json"), "must not have the option fs="),
    "option in an option": (
        LGBMClassifier(boosting_type="gbdt forcedsplits_filename=a.json"),
        "must not have the option boosting_type=",
    ),
    "file of LightGBM in a grid": (
        GridSearchCV(LGBMClassifier(), {"forcedsplits_filename": ["splits.json"]}),
        r"param_grid\.forcedsplits_filename must not set an option of LightGBM to 'splits.json'",
    ),
    "file of LightGBM in a grid of a wrapper": (
        RandomizedSearchCV(
            argmaxf.ThresholdFClassifier(LGBMClassifier()), [{"estimator__config": ["a.conf"]}]
        ),
        "must not set an option of LightGBM to 'a.conf'",
    ),
    "option in an option of a grid": (
        GridSearchCV(LGBMClassifier(), {"boosting_type": ["gbdt fs=a.json"]}),
        "must not set an option of LightGBM to 'gbdt fs=a.json'",
    ),
    "option in a name of a grid": (
        GridSearchCV(LGBMClassifier(), {"x fs=a.json y__z": [1]}),
        "param_grid key must not set an option of LightGBM to 'x fs=a.json y__z'",
    ),
    "fitted model in a grid": (
        GridSearchCV(make_pipeline(SVC()), {"svc": [GROWN]}),
        r"param_grid\.svc must not be fitted, got a fitted RandomForestClassifier",
    ),
    "fitted model in a model in a grid": (
        GridSearchCV(make_pipeline(GROWN), {"randomforestclassifier": [BaggingClassifier(GROWN)]}),
        r"randomforestclassifier\.estimator must not be fitted",
    ),
    "fitted model in an array": (
        GridSearchCV(make_pipeline(SVC()), {"svc": np.array([GROWN, None], dtype=object)[:1]}),
        "must not be fitted, got a fitted RandomForestClassifier",
    ),
}


@pytest.mark.parametrize(("model", "message"), REFUSED.values(), ids=REFUSED)
def test_files_that_could_run_code_or_open_files_are_refused(tmp_path, model, message):
    whole = model if is_classifier(model) else make_pipeline(model, SVC())
    skops_io.dump(whole, tmp_path / "m.skops")
    with pytest.raises(ValueError, match=message):
        load_classifier(tmp_path / "m.skops")


def test_a_model_that_lacks_a_parameter_is_refused(tmp_path):
    skops_io.dump(make_pipeline(StandardScaler(), LogisticRegression()), tmp_path / "model.skops")
    with zipfile.ZipFile(tmp_path / "model.skops") as file:
        state = json.loads(file.read("schema.json"))
    del state["content"]["content"]["memory"]
    with zipfile.ZipFile(tmp_path / "model.skops", "w") as file:
        file.writestr("schema.json", json.dumps(state))
    with pytest.raises(ValueError, match=r"is damaged: .* no attribute 'memory'"):
        load_classifier(tmp_path / "model.skops")


def test_a_file_without_an_estimator_is_refused(tmp_path):
    skops_io.dump(OrderedDict(a=1), tmp_path / "m.skops")
    with pytest.raises(ValueError, match="must hold a classifier, got OrderedDict"):
        load_classifier(tmp_path / "m.skops")


def test_a_distribution_that_runs_its_own_text_is_refused(tmp_path):
    """Distributions of scipy execute a text of their state as soon as they are loaded."""
    owned = tmp_path / "owned"
    search = RandomizedSearchCV(SVC(), {"C": loguniform(0.1, 1)})
    search.param_distributions["C"].dist._parse_arg_template = f"open({str(owned)!r}, 'w').close()"
    skops_io.dump(search, tmp_path / "m.skops")
    owned.unlink(missing_ok=True)
    with pytest.raises(ValueError, match="rv_continuous_frozen"):
        load_classifier(tmp_path / "m.skops")
    assert not owned.exists()


def test_a_file_that_says_one_name_and_means_another_is_refused(tmp_path):
    skops_io.dump(FunctionTransformer(np.add), tmp_path / "m.skops")
    with zipfile.ZipFile(tmp_path / "m.skops") as file:
        schema = json.loads(file.read("schema.json"))
    text = json.dumps(schema).replace('"__class__": "add"', '"__class__": "measure"')
    text = text.replace('"__module__": "numpy"', '"__module__": "numpy.testing"')
    with zipfile.ZipFile(tmp_path / "m.skops", "w") as file:
        file.writestr("schema.json", text)
    with pytest.raises(ValueError, match=r"numpy\.testing\.measure"):
        load_classifier(tmp_path / "m.skops")


TAKEN = {
    "wrapper": argmaxf.ThresholdFClassifier(LogisticRegression(), measure=argmaxf.measures.MCC()),
    "search": GridSearchCV(SVC(), [{"C": [1, 2]}, {"kernel": ["rbf"]}], cv=StratifiedKFold(3)),
    "columns": make_pipeline(
        ColumnTransformer(
            [
                ("numbers", StandardScaler(), make_column_selector(dtype_include=np.number)),
                ("texts", OneHotEncoder(dtype=np.float32), make_column_selector(pattern="t")),
                ("rest", "drop", slice(2, 3)),
            ]
        ),
        RandomForestClassifier(random_state=np.random.RandomState(0), class_weight={0: 1, 1: 2}),
    ),
    "text": make_pipeline(TfidfVectorizer(ngram_range=(1, 2), stop_words=["a"]), MultinomialNB()),
    "kernel": GaussianProcessClassifier(2.0 * RBF()),
    "LightGBM": LGBMClassifier(verbose=-1, metric="auc", monotone_constraints=[1, 0]),
    "grid of LightGBM": GridSearchCV(
        make_pipeline(StandardScaler(), LGBMClassifier()),
        {
            "standardscaler": ["passthrough", StandardScaler()],
            "lgbmclassifier__boosting_type": ["gbdt", "dart"],
        },
    ),
    "models in a grid": GridSearchCV(
        make_pipeline(SVC()), {"svc": [LGBMClassifier(), RandomForestClassifier()]}
    ),
    "XGBoost": XGBClassifier(max_depth=3, eval_metric=["auc", "logloss"]),
}


def written(model):
    """How a model shows itself, without places in memory."""
    return re.sub("0x[0-9a-fA-F]+", "", repr(model))


@pytest.mark.parametrize("model", TAKEN.values(), ids=TAKEN)
def test_plain_models_are_taken_as_they_are(tmp_path, model):
    skops_io.dump(model, tmp_path / "m.skops")
    assert written(load_classifier(tmp_path / "m.skops")) == written(clone(model))


FITTED = [
    LogisticRegression(),
    RandomForestClassifier(3),
    HistGradientBoostingClassifier(max_iter=3),
    CalibratedClassifierCV(LogisticRegression(), cv=2),
    GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2),
    argmaxf.ExpectedFClassifier(LogisticRegression()),
    argmaxf.ThresholdFClassifier(LogisticRegression()),
    argmaxf.BlendFClassifier(LogisticRegression()),
    argmaxf.SoftFClassifier(),
    argmaxf.MarginFClassifier(),
    argmaxf.CostSensitiveFClassifier(LogisticRegression()),
]


@pytest.mark.parametrize("model", FITTED, ids=lambda model: type(model).__name__)
def test_fitted_models_are_taken_to_be_trained_anew(tmp_path, model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    model = clone(model).fit(X, X[:, 0] + rng.normal(size=120) > 0)
    skops_io.dump(model, tmp_path / "m.skops")
    loaded = load_classifier(tmp_path / "m.skops")
    assert repr(loaded) == repr(clone(model))
    with pytest.raises(sklearn.exceptions.NotFittedError):
        sklearn.utils.validation.check_is_fitted(loaded)


def test_a_fitted_booster_names_the_remedy(tmp_path):
    model = LGBMClassifier(verbose=-1, n_estimators=2).fit([[0.0], [1.0]] * 20, [0, 1] * 20)
    skops_io.dump(model, tmp_path / "m.skops")
    with pytest.raises(ValueError, match=r"Booster; .* skops\.io\.dump\(sklearn\.base\.clone"):
        load_classifier(tmp_path / "m.skops")


def test_the_snippet_of_the_report_trusts_the_types_of_its_own_model(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    frame = pl.DataFrame({"x": x, "y": (x + rng.normal(size=200) > 1).astype(int)})
    frame.write_csv(tmp_path / "d.csv")
    report, save = tmp_path / "r.html", tmp_path / "m.skops"
    words = ["compare", str(tmp_path / "d.csv"), "--target", "y", "--folds", "2"]
    assert run([*words, "--report", str(report), "--save", str(save)]) == 0, capsys.readouterr().err
    page = html.unescape(report.read_text(encoding="utf-8"))
    snippet = page[page.index("import skops.io") : page.index("labels = model.predict(new_rows)")]
    assert "get_untrusted_types(file=file)" in snippet
    names = re.findall(r"^    '([\w.]+)',$", snippet, re.MULTILINE)
    assert set(names) == set(skops_io.get_untrusted_types(file=save))
    where = {"file": "m.skops"}
    with contextlib.chdir(tmp_path):
        exec(snippet, where)
        assert len(where["model"].predict(frame.drop("y"))) == 200
        skops_io.dump(running("import os"), save)
        with pytest.raises(skops_io.exceptions.UntrustedTypesFoundException):
            exec(snippet, where)
