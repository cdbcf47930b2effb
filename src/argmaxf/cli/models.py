"""The models that `compare` can train: a classifier behind preprocessing for mixed columns."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
from polars import selectors
from sklearn.base import ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from argmaxf._base.validation import check_choice
from argmaxf.cli.saved_models import load_classifier

ESTIMATORS = ("logistic", "forest", "boosting", "nb", "lightgbm", "xgboost")
MOST_CATEGORIES = 50  # of one column; rarer ones share a place


def make_classifier(name: str, seed: int) -> ClassifierMixin:
    """Return one of the classifiers by its short name, or the one in a file."""
    if name.endswith(".skops"):
        return load_classifier(Path(name))
    check_choice("estimator", name, ESTIMATORS)
    if name == "forest":
        return RandomForestClassifier(300, min_samples_leaf=2, n_jobs=-1, random_state=seed)
    if name == "boosting":
        return HistGradientBoostingClassifier(random_state=seed)
    if name in ("lightgbm", "xgboost"):
        return _boosted_elsewhere(name, seed)
    return LogisticRegression(max_iter=1000) if name == "logistic" else GaussianNB()


def _boosted_elsewhere(name: str, seed: int) -> Any:
    """Return the classifier of another package, where it is installed."""
    try:
        package = import_module(name)
    except ModuleNotFoundError:
        raise ValueError(f"--estimator {name} needs it: pip install {name}") from None
    if name == "lightgbm":
        return package.LGBMClassifier(random_state=seed, verbose=-1)
    return package.XGBClassifier(random_state=seed)


def behind_preprocessing(X: pl.DataFrame, classifier: Any) -> Pipeline:
    """Return the classifier behind preprocessing for the columns of X; a pipeline brings its own.

    So does what has one inside, such as a search over a pipeline, or a model that `--save` wrote.

    Numbers: missing ones get the median and a mark of their own, then all are scaled. Text and
    true/false: one column for each category, missing being one, rare and unknown ones together.
    """
    parts = (classifier, *classifier.get_params().values())
    if any(isinstance(part, Pipeline) for part in parts):
        return classifier
    numbers = X.select(selectors.numeric()).columns
    categories = [column for column in X.columns if column not in numbers]
    scaled = Pipeline(
        [
            (
                "fill",
                SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True),
            ),
            ("scale", StandardScaler()),
        ]
    )
    one_hot = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        min_frequency=2,
        max_categories=MOST_CATEGORIES,
        sparse_output=False,
    )
    columns = ColumnTransformer([("numbers", scaled, numbers), ("categories", one_hot, categories)])
    return Pipeline([("columns", columns), ("classifier", classifier)])
