"""The models that `compare` can train: a classifier behind preprocessing for mixed columns."""

from __future__ import annotations

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

from argmaxf.validation import check_choice

ESTIMATORS = ("logistic", "forest", "boosting", "nb")
MOST_CATEGORIES = 50  # of one column; rarer ones share a place


def make_classifier(name: str, seed: int) -> ClassifierMixin:
    """Return one of the classifiers by its short name."""
    check_choice("estimator", name, ESTIMATORS)
    if name == "forest":
        return RandomForestClassifier(300, min_samples_leaf=2, n_jobs=-1, random_state=seed)
    if name == "boosting":
        return HistGradientBoostingClassifier(random_state=seed)
    return LogisticRegression(max_iter=1000) if name == "logistic" else GaussianNB()


def behind_preprocessing(X: pl.DataFrame, classifier: Any) -> Pipeline:
    """Return the classifier behind preprocessing for the columns of X.

    Numbers: missing ones get the median and a mark of their own, then all are scaled. Text and
    true/false: one column for each category, missing being one, rare and unknown ones together.
    """
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
