"""Bugs to plant, one of each kind that an attack has found, and which kind of case catches it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import narwhals as nw
import numpy as np


class Planted(NamedTuple):
    """A bug, and the kind of case that must catch it."""

    kind: str
    bug: Callable[[], AbstractContextManager]


@contextmanager
def keys_as_python_values():
    """Time stamps lose their nanoseconds on the way to the group-by."""
    from argmaxf.frames import engines

    def coarser(number):
        def numbered(self, frame, by, name):
            schema = frame.collect_schema()
            columns = [n for n in by if schema[n] in (nw.Datetime, nw.Duration)]
            cast = (
                frame.with_columns(nw.col(n).cast(nw.Int64) // 10_000_000 for n in columns)
                if columns
                else frame
            )
            return number(self, cast, by, name)

        return numbered

    with (
        patch.object(engines.InMemory, "number", coarser(engines.InMemory.number)),
        patch.object(engines.Engine, "number", coarser(engines.Engine.number)),
    ):
        yield


def text_as_numbers():
    from argmaxf.files.inputs import Input

    scan = Input.scan

    def typed(self, *, text=(), **options):
        return scan(self, text=text[:1], **options)

    return patch.object(Input, "scan", typed)


def patterns_for_names():
    import polars as pl

    def globbing(scan):
        return lambda path, **options: scan(path, **{**options, "glob": True})

    names = "scan_ipc", "scan_parquet", "scan_csv"
    return patch.multiple(pl, **{name: globbing(getattr(pl, name)) for name in names})


def partitions_lost():
    from argmaxf.files.inputs import Input

    return patch.object(Input, "with_partition", lambda self, frame, **options: frame)


def one_temporary_name():
    import os

    from argmaxf._base import atomic_write as whole

    def shared(folder, name, mode):
        path = Path(folder) / f".{name}.part"
        return path, os.open(path, os.O_CREAT | os.O_RDWR, mode)

    return patch.object(whole, "_locked", shared)


def in_other_processes(code):
    """Plant a bug in the processes that a case starts."""

    def planted():
        from fuzz import worker

        return patch.object(worker, "PLANT", code)

    return planted


# Where Polars panics, the batches of its own iterator just end.
ENDS_EARLY = """
import argmaxf.frames.engines as engines

def ending(query, ordered=True):
    yield from query.collect_batches(chunk_size=1 << 18, engine="streaming")

engines.polars_batches = ending
"""


@contextmanager
def inputs_unchecked():
    from argmaxf._base import atomic_write as whole

    reading = importlib.import_module("argmaxf.files.scored")
    with ExitStack() as stack:
        for module in (whole, reading):
            stack.enter_context(patch.object(module, "refuse_inputs", lambda outputs, inputs: None))
        yield


def rounded_probabilities():
    from argmaxf._base import validation
    from argmaxf.expected import maximize

    checked = validation.as_real_array

    def rounded(name, values, **given):
        return np.asarray(checked(name, values, **given)).astype(np.float32)

    return patch.object(maximize, "as_real_array", rounded)


def no_large_text():
    from argmaxf.frames import engines

    number = engines.InMemory.number

    def refusing(self, frame, by, name):
        arrow = frame.implementation.is_pyarrow()
        if arrow and any(str(frame.to_native()[key].type) == "large_string" for key in by):
            raise TypeError("large_string")
        return number(self, frame, by, name)

    return patch.object(engines.InMemory, "number", refusing)


@contextmanager
def small_beta_is_zero():
    from argmaxf import problem
    from argmaxf.measures import FBeta

    coefficients = FBeta.coefficients

    def rounded(self, number=float):
        found = coefficients(self, number)
        return found._replace(b_in=number(0), b_out=number(0)) if found.b_in < 1e-10 else found

    problem._kept.cache_clear()
    with patch.object(FBeta, "coefficients", rounded):
        yield
    problem._kept.cache_clear()  # what was asked with the bug is kept no longer than the bug


def no_check_of_zlib():
    from reproduction import datasets

    return patch.object(datasets, "_BROKEN", (tarfile_error(),))


def tarfile_error():
    import tarfile

    return tarfile.TarError


def limits_are_no_matter_of_use():
    from argmaxf.expected import search

    prepare = search.Search._prepare_ratio

    def unlimited(self):
        problem = self.problem
        self.problem = replace(problem, least=1, most=2**62)
        try:
            return prepare(self)
        finally:
            self.problem = problem

    return patch.object(search.Search, "_prepare_ratio", unlimited)


def no_sure_positive_no_set():
    from argmaxf.expected import worst_case

    best = worst_case._best_worst

    def none(bands, problem):
        return best(bands, problem) if bands.low[-1] > 0.0 else 0

    return patch.object(worst_case, "_best_worst", none)


class Everything(frozenset):
    """A list of trusted names that has them all."""

    def __contains__(self, name):
        return True

    def __rsub__(self, names):
        return set()


@contextmanager
def hostile_models_taken():
    """Trust what a model file asks for, functions included."""
    from argmaxf.cli import models

    with (
        patch.object(models, "trusted_types", Everything),
        patch.object(models, "_refusal", lambda name, value: ""),
    ):
        yield


def normal_limits():
    """Give intervals two standard errors to each side, which are none without errors."""
    from argmaxf.empirical import interval

    def normal(counts, measure, *options):
        t, k, s, n = counts
        value = measure.value(*counts)
        reach = 2.0 * np.sqrt(k + s - 2.0 * t) / n
        return interval.Interval(value - reach, value, value + reach)

    return patch.object(interval, "interval_of_counts", normal)


def replaced(module, name, value):
    """Plant a bug by putting something else in a function's place."""

    def planted():
        return patch.object(importlib.import_module(module), name, value)

    return planted


PLANTED = {
    "keys lose nanoseconds": Planted("frames", keys_as_python_values),
    "outputs replace columns": Planted(
        "frames",
        replaced("argmaxf.frames.table", "_outputs", lambda f, c, output: (output,) * len(c)),
    ),
    "names are reserved": Planted(
        "frames", replaced("argmaxf.frames.table", "unused", lambda taken, wanted: list(wanted))
    ),
    "changed frames are not noticed": Planted(
        "changing",
        replaced("argmaxf.frames.solve", "check_same", lambda before, after: None),
    ),
    "text segments become numbers": Planted("files", text_as_numbers),
    "partition column": Planted("files", partitions_lost),
    "names are patterns": Planted("files", patterns_for_names),
    "modes are lost": Planted(
        "files", replaced("argmaxf._base.atomic_write", "_mode_to_keep", lambda target, path: 0o644)
    ),
    "inputs are written over": Planted("inputs", inputs_unchecked),
    "streams end early": Planted("damage", in_other_processes(ENDS_EARLY)),
    "copies of the input stay": Planted(
        "stream",
        replaced("argmaxf._base.atomic_write", "_remove_left_behind", lambda folder, name: None),
    ),
    "hostile model": Planted("models", hostile_models_taken),
    "files named by a model": Planted(
        "models", replaced("argmaxf.cli.models", "_refusal", lambda name, value: "")
    ),
    "foreign cache file": Planted(
        "caches", replaced("argmaxf._base.numba_cache", "_is_ours", lambda state, closed_to: True)
    ),
    "one temporary name": Planted("writers", one_temporary_name),
    "ties in single precision": Planted("ties", rounded_probabilities),
    "near ties go to the smallest": Planted(
        "ties",
        replaced("argmaxf.expected.sets", "settle", lambda p, rivals, problem: min(rivals)),
    ),
    "small β is zero": Planted("extremes", small_beta_is_zero),
    "masks are ignored": Planted(
        "types", replaced("argmaxf._base.validation", "refuse_masked", lambda name, values: None)
    ),
    "large text is no key": Planted("frames", no_large_text),
    "impossible sketches": Planted(
        "sketches",
        replaced("argmaxf.expected.sketch", "possible", lambda rows, values: True),
    ),
    "damaged archives": Planted("archives", no_check_of_zlib),
    "limits do not count for use": Planted("levels", limits_are_no_matter_of_use),
    "no sure positive, no set": Planted("bands", no_sure_positive_no_set),
    "counts hardly stray": Planted(
        "summaries", replaced("argmaxf.expected.count_distribution", "INTERPOLATION_NATS", 3.0)
    ),
    "large scores are merged": Planted(
        "thresholds", replaced("argmaxf._base.validation", "_refuse_inexact", lambda name, a: None)
    ),
    "clustered guarantee": Planted(
        "guarantees", replaced("argmaxf.estimators.meta", "refuse_groups", lambda: None)
    ),
    "narrow interval": Planted("intervals", normal_limits),
}
