"""Python code that uses the result of a comparison."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from argmaxf.comparison.result import Comparison
from argmaxf.estimators.plain import PlainClassifier


def code(comparison: Comparison, saved: str | None = None) -> str:
    """Return Python code that uses the result: the saved model, or one like it."""
    if saved is not None:
        return (
            "import skops.io\n\n"
            f"file = {saved!r}\n"
            "trusted = skops.io.get_untrusted_types(file=file)  # look at this list first\n"
            "model = skops.io.load(file, trusted=trusted)\n"
            "labels = model.predict(new_rows)  # a frame with the columns of the training table\n"
        )
    model = _bare(comparison.estimator)
    imports = sorted({f"from {_home(m)} import {type(m).__name__}" for m in _parts(model)})
    return "\n".join(
        [*imports, "", f"model = {model!r}.fit(X, y)", "labels = model.predict(X_new)\n"]
    )


def _bare(model: Any) -> Any:
    """Return a classifier without the preprocessing before it and inside it."""
    if isinstance(model, Pipeline | PlainClassifier):
        return _bare(model[-1] if isinstance(model, Pipeline) else model.estimator)
    inner = getattr(model, "estimator", None)
    return (
        model
        if inner is None
        else type(model)(**{**model.get_params(deep=False), "estimator": _bare(inner)})
    )


def _parts(model: Any) -> Iterator[Any]:
    """Return a classifier and those inside it."""
    yield model
    for value in model.get_params(deep=False).values():
        if isinstance(value, BaseEstimator):
            yield from _parts(value)


def _home(model: Any) -> str:
    """Return the public module that a class is imported from."""
    module = type(model).__module__
    if module.startswith("argmaxf."):
        return "argmaxf"
    public = [part for part in module.split(".") if not part.startswith("_")]
    return ".".join(public)
