"""The models of `compare`: by name, in model files that are read and written, preprocessing.

A skops file names the classes and functions that it is made of, and whoever wrote the file chose
them. So a file is loaded only if every name in it stands on the list below, and the model is used
only if no parameter of it, however deep, is a function or names a file.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from polars import selectors
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import all_estimators

from argmaxf._base.validation import check_choice
from argmaxf.cli.common import needed

ESTIMATORS = ("logistic", "forest", "boosting", "nb", "lightgbm", "xgboost")
MOST_CATEGORIES = 50  # of one column; rarer ones share a place

# Besides the estimators of scikit-learn: what their parameters and fitted attributes are made of.
NAMED = {
    "builtins": "object",
    "collections": "OrderedDict",
    "numpy": "dtype",
    "sklearn.calibration": "_CalibratedClassifier _SigmoidCalibration",
    "sklearn.compose._column_transformer": "make_column_selector",
    "sklearn.ensemble._hist_gradient_boosting.binning": "_BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.predictor": "TreePredictor",
    "sklearn.gaussian_process._gpc": "_BinaryGaussianProcessClassifierLaplace",
    "sklearn.metrics._scorer": "_PassthroughScorer",
    "sklearn.tree._tree": "Tree",
    "sklearn.utils._bunch": "Bunch",
    "sklearn.utils._metadata_requests": "MetadataRequest MethodMetadataRequest",
    "lightgbm.sklearn": "LGBMClassifier LGBMModel LGBMRegressor",
    "xgboost.sklearn": "XGBClassifier XGBRFClassifier XGBRFRegressor XGBRegressor",
}
MODULES = (  # all of their classes
    "sklearn.gaussian_process.kernels",
    "sklearn.model_selection._split",
    "sklearn.neural_network._stochastic_optimizers",
)
PACKAGES = ("argmaxf.measures", "argmaxf.empirical", "argmaxf.estimators", "argmaxf.comparison")
COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)
PLAIN_DATA = (type(None), bool, int, float, complex, str, bytes, slice, range)
NUMPY_DATA = (np.generic, np.dtype, np.random.RandomState, np.random.Generator)
SCALARS = (bool, int, float, complex, str, object)  # classes that may be parameters, as dtypes
GRID = r"\.param_(grid|distributions)\b"  # of a search
PLAIN_TEXT = r"[\w.,:-]*"
UNFITTED = "save it before it is fitted: skops.io.dump(sklearn.base.clone(model), file)"


def make_classifier(name: str, seed: int) -> ClassifierMixin:
    """Return one of the classifiers by its short name, or the one in a file."""
    if name.endswith(".skops"):
        return load_classifier(Path(name))
    check_choice("estimator", name, ESTIMATORS)
    if name == "lightgbm":
        return needed(name, "--estimator lightgbm").LGBMClassifier(random_state=seed, verbose=-1)
    if name == "xgboost":
        return needed(name, "--estimator xgboost").XGBClassifier(random_state=seed)
    return {
        "logistic": LogisticRegression(max_iter=1000),
        "forest": RandomForestClassifier(300, min_samples_leaf=2, n_jobs=-1, random_state=seed),
        "boosting": HistGradientBoostingClassifier(random_state=seed),
        "nb": GaussianNB(),
    }[name]


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
    fill = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    one_hot = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        min_frequency=2,
        max_categories=MOST_CATEGORIES,
        sparse_output=False,
    )
    scaled = make_pipeline(fill, StandardScaler())
    columns = make_column_transformer((scaled, numbers), (one_hot, categories))
    return make_pipeline(columns, classifier)


def save_classifier(model: Any, path: Path) -> list[str]:
    """Write a fitted model; return the types to trust when it is loaded."""
    skops = needed("skops.io", "--save", "save")
    skops.dump(model, path)
    return list(skops.get_untrusted_types(file=path))


def load_classifier(path: Path) -> Any:
    """Return an unfitted copy of the classifier in a file that skops wrote.

    No code comes from the file: its types must be on the list of this module, and its parameters
    must be data or estimators from that list.

    Raises
    ------
    ValueError
        If there is no such file, or if something in it cannot be trusted.
    """
    skops = needed("skops.io", "--estimator with a file", "save")
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    try:
        content = path.read_bytes()  # once: what is checked is what is loaded
        asked = skops.get_untrusted_types(data=content)
        others = sorted(set(asked) - trusted_types())
        model = None if others else skops.loads(content, trusted=asked)
    except Exception as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if others:
        raise ValueError(
            f"{path} must hold known estimators and data only, got {', '.join(others)}; functions "
            f"are never taken from a file; if they come from fitting, {UNFITTED}"
        )
    try:
        if reason := _refused(model):
            raise ValueError(f"{path}: {reason}")
        return clone(model)
    except (AttributeError, RecursionError, TypeError) as error:  # parameters that are not there
        raise ValueError(f"{path} is damaged: {error}") from None


def _refused(model: Any) -> str:
    """Return what is wrong with a model whose types are all on the list, or nothing."""
    found = list(_parameters(model, "model", set()))
    options = _options_by_grids([each.value for each in found])
    for each in found:
        if reason := _refusal(each, options):
            return f"{each.name} {reason}"
    known = isinstance(model, BaseEstimator) and is_classifier(model)
    return "" if known else f"the file must hold a classifier, got {type(model).__name__}"


@cache
def trusted_types() -> frozenset[str]:
    """Return the full names of the classes that a model file may be made of; no functions."""
    named = {f"{module}.{name}" for module, names in NAMED.items() for name in names.split()}
    modules = [*MODULES]
    for package in PACKAGES:
        folder = import_module(package).__path__
        modules += [package, *(each.name for each in pkgutil.iter_modules(folder, f"{package}."))]
    kinds = [each for module in modules for each in vars(import_module(module)).values()]
    defined = [each for each in kinds if inspect.isclass(each) and each.__module__ in modules]
    numbers = [base for kind in np.sctypeDict.values() for base in kind.__mro__]
    numbers = [each for each in numbers if issubclass(each, np.generic)]
    estimators = [each for _, each in all_estimators() if each is not FrozenEstimator]
    return frozenset(named | {_name_of(each) for each in (*defined, *numbers, *estimators)})


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


class Found(NamedTuple):
    """A value inside a model: where it is, and whether `clone` makes it anew or copies it."""

    name: str
    value: Any
    copied: bool

    @property
    def option(self) -> str:
        """The name of the parameter, of the innermost estimator that a grid can set it for."""
        return self.name.rpartition(".")[2].rpartition("__")[2]


def _parameters(
    value: Any, name: str, seen: set[tuple[int, bool]], copied: bool = False
) -> Iterator[Found]:
    """Yield a value and all inside it that `clone` keeps.

    `clone` makes estimators anew from their parameters, also those in lists. What is in a
    dictionary or an array, such as the grid of a search, it copies with all attributes.
    """
    yield Found(name, value, copied)
    inside: Iterable[tuple[str, Any]] = ()
    if isinstance(value, dict):
        copied = True
        yield from (Found(f"{name} key", key, copied) for key in value)
        inside = ((f"{name}.{key}", each) for key, each in value.items())
    elif isinstance(value, COLLECTIONS):
        array = value if isinstance(value, np.ndarray) else None
        copied = copied or array is not None
        inside = ((name, each) for each in (value if array is None else array.flat))
    elif hasattr(value, "__dict__") and not inspect.isclass(value):
        if (id(value), copied) in seen:  # an object may hold itself
            return
        seen.add((id(value), copied))
        inside = ((f"{name}.{key}", each) for key, each in _kept(value).items())
        copied = copied or not hasattr(value, "get_params")
    for place, each in inside:
        yield from _parameters(each, place, seen, copied)


def _kept(value: Any) -> dict[str, Any]:
    """Return what `clone` takes from an object: of an estimator parameters and little else.

    Attributes that hide a method of the class are looked at, too: the class's own methods are
    called here, and the hidden ones later.
    """
    kind: Any = type(value)
    if not hasattr(kind, "get_params"):
        return dict(vars(value))
    copied = ("_sklearn_output_config", "_metadata_request")
    beside = {
        k: v for k, v in vars(value).items() if k in copied or callable(getattr(kind, k, None))
    }
    return beside | dict(kind.get_params(value, deep=False))


def _refusal(found: Found, options: frozenset[str] | None) -> str:
    """Return why a parameter cannot be trusted, or nothing.

    `options` are those that grids may set where the model has LightGBM inside.
    """
    name, value, option = found.name, found.value, found.option
    kind = type(value)
    if option == "memory" and not (value is None or kind in COLLECTIONS):
        return f"must be None, as joblib runs what it finds in a folder; got {value!r:.80}"
    if option == "input" and isinstance(value, str) and value in ("file", "filename"):
        return f"must be 'content', as a model must not open files; got {value!r}"
    if isinstance(value, str) and options is not None and re.search(GRID, name):
        known = option in options or value in ("passthrough", "drop") or name.endswith(" key")
        if not (known and re.fullmatch(PLAIN_TEXT, value)):
            return f"must not set an option of LightGBM to {value!r:.80}, which may name a file"
    if inspect.isclass(value):
        known = value in SCALARS or issubclass(value, np.generic)
        return "" if known else f"must not be a class, got {_name_of(value)}"
    data = isinstance(value, (*PLAIN_DATA, *NUMPY_DATA)) or kind in (*COLLECTIONS, dict)
    if data or sparse.issparse(value):
        return ""
    own_clone = getattr(kind, "__sklearn_clone__", None) is not BaseEstimator.__sklearn_clone__
    if isinstance(value, BaseEstimator) and own_clone:
        return f"must be an estimator that can be trained, got {kind.__name__}"
    if found.copied and isinstance(value, BaseEstimator) and _has_learned(value):
        return f"must not be fitted, got a fitted {kind.__name__}; {UNFITTED}"
    if _name_of(kind) in trusted_types():
        return _booster_refusal(value) if kind.__module__ == "lightgbm.sklearn" else ""
    got = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    return f"must be data or a known estimator, never a function; got {got or _name_of(kind)}"


def _has_learned(model: BaseEstimator) -> bool:
    return bool(vars(model).keys() - vars(clone(model)).keys())


def _options_by_grids(values: list[Any]) -> frozenset[str] | None:
    """Return what grids may set to a text: parameters that the model's own classes declare.

    LightGBM takes any option that it knows, also by `set_params`. None where it is not inside.
    """
    if not any(type(value).__module__ == "lightgbm.sklearn" for value in values):
        return None
    kinds = {type(value) for value in values if isinstance(value, BaseEstimator)}
    return frozenset(name for kind in kinds for name in inspect.signature(kind).parameters)


def _booster_refusal(model: Any) -> str:
    """Return why a LightGBM model cannot be trusted: some of its options name files to read.

    It gets its options as one text, in which a value with spaces would be further options.
    """
    named = inspect.signature(type(model)).parameters
    for name, value in type(model).get_params(model, deep=False).items():
        texts = [e.value for e in _parameters(value, name, set()) if isinstance(e.value, str)]
        plain = name.isidentifier() and all(re.fullmatch(PLAIN_TEXT, text) for text in texts)
        if not plain or (texts and name not in named and name != "metric"):
            return f"must not have the option {name}={value!r:.80}, which may name a file"
    return ""
