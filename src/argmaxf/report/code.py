"""Python code that uses the result of a comparison."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from inspect import signature
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

import argmaxf
from argmaxf.comparison.result import Comparison
from argmaxf.estimators.meta import PlainClassifier


class SavedModel(NamedTuple):
    """A model file: its name, and the types in it that skops does not trust by itself."""

    name: str
    types: Sequence[str]


def code(comparison: Comparison, saved: SavedModel | None = None) -> str:
    """Return Python code that uses the result: the saved model, or one like it.

    Types of a saved model are listed as they were when it was written, so that a file with others
    is refused when it is loaded.
    """
    if saved is not None:
        types = "".join(f"    {name!r},\n" for name in saved.types)
        return (
            "import skops.io\n\n"
            f"file = {saved.name!r}\n"
            "print(skops.io.get_untrusted_types(file=file))  # look at the types in the file\n"
            f"trusted = [  # those of the model when it was saved: load a file with no others\n"
            f"{types}]\n"
            "model = skops.io.load(file, trusted=trusted)\n"
            "labels = model.predict(new_rows)  # a frame with the columns of the training table\n"
        )
    model = _bare(comparison.estimator)
    written = _written(model)
    imports = {f"from {_home(m)} import {type(m).__name__}" for m in _parts(model)}
    if re.search(r"\bnan\b", written):  # what XGBoost takes for missing
        imports.add("from numpy import nan")
    return "\n".join(
        [*sorted(imports), "", f"model = {written}.fit(X, y)", "labels = model.predict(X_new)\n"]
    )


def _bare(model: Any) -> Any:
    """Return a classifier without the preprocessing before it, and before what a method wraps.

    What has a pipeline inside and is not ours stays whole: a search names the steps of its own.
    """
    if isinstance(model, Pipeline | PlainClassifier):
        return _bare(model[-1] if isinstance(model, Pipeline) else model.estimator)
    given = model.get_params(deep=False)
    if _home(model) != "argmaxf" or given.get("estimator") is None:
        return model
    return type(model)(**{**given, "estimator": _bare(given["estimator"])})


def _written(value: Any) -> str:
    """Return the call that makes a classifier, whole: what it shows of itself may be cut off."""
    if isinstance(value, np.ndarray | np.generic):
        return _written(value.tolist())
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_written(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_written, value))},)"
    if not isinstance(value, BaseEstimator):
        return repr(value)
    usual = {name: each.default for name, each in signature(type(value)).parameters.items()}
    given = value.get_params(deep=False).items()
    # what a signature does not name, as in XGBoost, is None by default
    other = [f"{k}={_written(v)}" for k, v in given if repr(v) != repr(usual.get(k))]
    return f"{type(value).__name__}({', '.join(other)})"


def _parts(model: Any) -> Iterator[Any]:
    """Return a classifier and those inside it, or those in a list or dictionary of them."""
    if isinstance(model, list | tuple | dict):
        inside: Iterable[Any] = model.values() if isinstance(model, dict) else model
    elif isinstance(model, BaseEstimator):
        yield model
        inside = model.get_params(deep=False).values()
    else:
        if type(model).__module__.startswith("argmaxf."):  # a measure or a splitter
            yield model
        return
    for each in inside:
        yield from _parts(each)


def _home(model: Any) -> str:
    """Return the public module that a class is imported from."""
    module = type(model).__module__
    if module.startswith("argmaxf."):
        top_level = hasattr(argmaxf, type(model).__name__)
        return "argmaxf" if top_level else ".".join(module.split(".")[:2])
    public = takewhile(lambda part: not part.startswith("_"), module.split("."))
    return ".".join(public) or module
