"""Attacks by files that others made: nothing in a model or in compiled code of theirs is run."""

from __future__ import annotations

import functools
import os
from unittest.mock import patch

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

import argmaxf
from argmaxf._base import numba_cache
from argmaxf.cli.models import load_classifier
from fuzz.asking import error_of

FUNCTIONS = (np.testing.measure, np.testing.rundocs, np.genfromtxt, np.add, np.loadtxt, eval, print)


# A search would keep its trees: it copies what is in its grid.
GROWN = RandomForestClassifier(2, warm_start=True).fit([[0.0], [1.0]] * 5, [0, 1] * 5)


def models(rng, folder):
    """A model file with something hostile anywhere is refused; the same without it is taken."""
    import skops.io

    hostile = rng.random() < 0.7
    model = _wrapped(rng, _hostile(rng) if hostile else _harmless(rng))
    skops.io.dump(model, folder / "m.skops")
    wrong = error_of(lambda: load_classifier(folder / "m.skops"))
    assert (wrong is not None) == hostile, (model, wrong)


def _hostile(rng):
    """Draw an estimator that runs a function or opens a file."""
    function = FUNCTIONS[rng.integers(len(FUNCTIONS))]
    function = functools.partial(function) if rng.random() < 0.2 else function
    kinds = (CountVectorizer, TfidfVectorizer, HashingVectorizer)
    kind = kinds[rng.integers(len(kinds))]
    option = str(rng.choice(["tokenizer", "preprocessor", "analyzer"]))
    return [
        lambda: kind(**{option: function}),
        lambda: kind(input=str(rng.choice(["file", "filename"]))),
        lambda: FunctionTransformer(function),
        lambda: SVC(kernel=function),
        lambda: GridSearchCV(SVC(), {"kernel": ["rbf", function]}),
        lambda: GridSearchCV(LGBMClassifier(), {"forcedsplits_filename": ["a.json"]}),
        lambda: GridSearchCV(Pipeline([("a", SVC())]), {"a": [GROWN]}),
        lambda: Pipeline([("a", SVC())], memory="folder"),
        lambda: argmaxf.ThresholdFClassifier(LogisticRegression(), measure=function),
    ][rng.integers(9)]()


def _harmless(rng):
    plain = (CountVectorizer(), TfidfVectorizer(stop_words=["a"]), FunctionTransformer(), SVC(C=2))
    return plain[rng.integers(len(plain))]


def _wrapped(rng, part):
    """Put an estimator inside others, up to three deep; the outermost is a classifier."""
    for _ in range(rng.integers(0, 4)):
        if is_classifier(part):
            part = [
                lambda: argmaxf.ThresholdFClassifier(part),  # noqa: B023 (called at once)
                lambda: GridSearchCV(part, {}),  # noqa: B023
                lambda: Pipeline([("only", part)]),  # noqa: B023
            ][rng.integers(3)]()
        else:
            part = ColumnTransformer([("part", part, ["a"])])
    return part if is_classifier(part) else Pipeline([("part", part), ("end", SVC())])


def caches(rng, folder):
    """Compiled code is neither kept nor looked for where somebody else can write."""
    place = folder / "cache"
    place.mkdir(mode=0o700)
    with patch.dict(os.environ, NUMBA_CACHE_DIR=str(place)):
        cached = _cache_now()
        assert place in cached.parents
        inside = cached / "kernel_1" if rng.random() < 0.5 else cached
        inside.mkdir(exist_ok=True)
        (inside / "kernel.nbi").write_bytes(b"")
        (inside / "kernel.nbi").chmod(0o644)
        ours = [p for p in (inside / "kernel.nbi", *inside.parents, inside) if place in p.parents]
        changed = ours[rng.integers(len(ours))]
        is_safe = rng.random() < 0.3
        if is_safe:
            changed.chmod(0o755)
        elif os.geteuid() == 0 and rng.random() < 0.5:
            os.chown(changed, 65_534, -1)
        else:
            cached.chmod(0o755)  # a file that others can write is as bad if they can reach it
            changed.chmod(int(rng.choice([0o777, 0o775, 0o757])))
        assert (_cache_now() == cached) == is_safe, (changed, oct(changed.stat().st_mode))


def _cache_now():
    """Return the folder that a new process would use."""
    with patch.object(numba_cache, "_folder", []):
        return numba_cache.cache_folder()
