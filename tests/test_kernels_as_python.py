"""Every kernel as Python: the same answers as compiled, and lines that coverage can count."""

import importlib
import inspect
import pkgutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import argmaxf
from argmaxf import (
    LabelledSketch,
    ProbabilitySketch,
    expected_f,
    expected_f_curve,
    maximize_expected_f,
    maximize_expected_f_from_joint,
    maximize_expected_f_from_mixture,
    maximize_expected_f_from_samples,
    maximize_expected_macro_f,
    maximize_worst_case_f,
)
from argmaxf._base import compiled
from argmaxf._base.compiled import Kernel
from argmaxf.expected import dependent_kernels
from argmaxf.files import text_tables
from argmaxf.measures import Tversky
from tests.judges import all_label_vectors, joint_parameters

RNG = np.random.default_rng(0)
SOME = RNG.random(300) ** 3
TABLE = RNG.random((12, 9)) ** 2
CELLS = sparse.csr_array(np.where(RNG.random((30, 8)) < 0.4, RNG.random((30, 8)), 0.0))
LEVEL_CELLS = sparse.csr_array(np.round(CELLS.toarray(), 1))
LEVELS = RNG.integers(0, 20, 400) / 100
NEAR_TIES = np.append(np.full(40, 0.3), 0.3 - 1e-17 * np.arange(40))
TIED = np.append(np.ones(301), 0.5)  # with and without the last: the same F
EMPTY_TIED = np.append(0.5, np.zeros(301))
NEARLY_TIED = np.r_[np.ones(301), np.full(3, 0.5 + 1e-15)]
CERTAIN = np.append(np.ones(40), RNG.random(60) ** 9)
MANY = RNG.random(20_000) ** 3
RARE = RNG.random(20_000) ** 400
ALIKE = 0.3 + 1e-9 * RNG.random(20_000)
VECTORS = all_label_vectors(5)
JOINT = joint_parameters(VECTORS, RNG.dirichlet(np.ones(len(VECTORS))))
DRAWS = RNG.random((40, 15)) < 0.3


def ensemble_of_maps():
    torch = pytest.importorskip("torch")
    members = torch.from_numpy(np.random.default_rng(0).random((3, 1, 1, 12, 12)))
    return argmaxf.torch.segment(members, ensemble=True).masks.numpy()


def fields_of_text():
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        file.write(b"a,b\n1,2\n3,4,5\n")
        file.flush()
        return text_tables.first_ragged(Path(file.name), ",").row


def filled(kernel, *arguments):
    """Call a kernel with copies of arrays, which it may fill, and return them all."""
    copies = [np.array(a) if isinstance(a, np.ndarray) else a for a in arguments]
    kernel(*copies)
    return tuple(copies)


CALLS = {
    "set": lambda: maximize_expected_f(SOME),
    "jaccard": lambda: maximize_expected_f(SOME, measure="jaccard", ties="together"),
    "two tilts": lambda: maximize_expected_f(SOME, measure=Tversky(0.1, 0.2), zero_division=1.0),
    "levels": lambda: maximize_expected_f(LEVELS, ties="together"),
    "near ties": lambda: maximize_expected_f(NEAR_TIES),
    "ties of sizes": lambda: maximize_expected_f(TIED),
    "ties of sizes, jaccard": lambda: maximize_expected_f(TIED, measure="jaccard"),
    "ties of an empty set": lambda: maximize_expected_f(EMPTY_TIED, zero_division=1.0),
    "near ties of sizes": lambda: maximize_expected_f(NEARLY_TIED),
    "certain": lambda: maximize_expected_f(CERTAIN, measure="jaccard"),
    "limits": lambda: maximize_expected_f(SOME, max_selected=5),
    "rows": lambda: maximize_expected_f(TABLE, average="samples"),
    "columns": lambda: maximize_expected_f(TABLE, average="macro"),
    "cells": lambda: maximize_expected_f(CELLS, average="samples"),
    "cells by column": lambda: maximize_expected_f(CELLS, average="macro"),
    "all cells": lambda: maximize_expected_f(CELLS, average="micro"),
    "segments": lambda: maximize_expected_f(SOME, by=np.arange(300) % 7),
    "precision": lambda: maximize_expected_f(SOME, min_precision=0.6, confidence_level=0.9),
    "recall": lambda: maximize_expected_f(SOME, min_recall=0.3, confidence_level=0.9),
    "mcc": lambda: maximize_expected_f(SOME[:60], measure="mcc"),
    "kappa": lambda: maximize_expected_f(SOME[:60], measure="kappa"),
    "gmean": lambda: maximize_expected_f(SOME[:60], measure="gmean"),
    "balanced accuracy": lambda: maximize_expected_f(SOME, measure="balanced_accuracy"),
    "curve": lambda: np.asarray(expected_f_curve(SOME)),
    "value": lambda: expected_f(SOME, SOME > 0.3),
    "value of a fraction": lambda: expected_f(SOME, SOME > 0.3, measure="jaccard"),
    "many": lambda: maximize_expected_f(MANY),
    "rare": lambda: maximize_expected_f(RARE),
    "many levels": lambda: maximize_expected_f(np.round(MANY, 2)),
    "many, jaccard, limited": lambda: maximize_expected_f(MANY, measure="iou", max_selected=99),
    "sketch": lambda: ProbabilitySketch.from_array(MANY).decide(),
    "sketch, value": lambda: ProbabilitySketch.from_array(MANY).expected_f(threshold=0.3),
    "sketch, linear": lambda: ProbabilitySketch.from_array(MANY).decide(measure="kappa"),
    "labelled sketch": lambda: LabelledSketch.from_arrays(SOME > 0.4, SOME[::-1] + SOME).tune(),
    "many alike": lambda: maximize_expected_f(ALIKE, max_selected=9_000),
    "small and equal": lambda: maximize_expected_f(np.repeat([0.9, 0.01], [20, 40]), measure="mcc"),
    "one class a row": lambda: maximize_expected_macro_f(TABLE, labels_per_row=1),
    "one of two classes": lambda: maximize_expected_macro_f(SOME.reshape(-1, 2), labels_per_row=1),
    "two labels a row": lambda: maximize_expected_macro_f(CELLS, max_labels_per_row=2),
    "draws": lambda: maximize_expected_f_from_samples(DRAWS),
    "sparse draws": lambda: maximize_expected_f_from_samples(sparse.csr_array(DRAWS.astype(int))),
    "cells, at most 3": lambda: maximize_expected_f(LEVEL_CELLS, average="macro", max_selected=3),
    "levels, at most 7": lambda: maximize_expected_f(LEVELS, max_selected=7),
    "equal items": lambda: maximize_expected_f(
        np.repeat([0.2, 0.7], 200), min_precision=0.6, confidence_level=0.9
    ),
    "mixture": lambda: maximize_expected_f_from_mixture(TABLE),
    "joint": lambda: maximize_expected_f_from_joint(*JOINT),
    "ensemble of maps": lambda: ensemble_of_maps(),
    "text": lambda: fields_of_text(),
    "reciprocals": lambda: filled(
        dependent_kernels.reciprocals, SOME, *SOME[:12].reshape(3, 4), np.zeros(SOME.size)
    ),
    "worst case": lambda: maximize_worst_case_f(SOME * 0.9, SOME),
}


def all_kernels():
    """Return every kernel of the library by its name."""
    names = [m.name for m in pkgutil.walk_packages(argmaxf.__path__, "argmaxf.")]
    without_kernels = ("torch.triton_rows", "torch.monai", "onnx")  # not of numba
    others = [f"argmaxf.{name}" for name in without_kernels]
    modules = [importlib.import_module(name) for name in names if name not in others]
    found = {v for module in modules for v in vars(module).values() if isinstance(v, Kernel)}
    return {f"{kernel.__module__}.{kernel.__name__}": kernel for kernel in found}


def numbers(answer):
    """Return the numbers of an answer, whatever its type."""
    if isinstance(answer, tuple):
        return [number for part in answer for number in numbers(part)]
    if isinstance(answer, np.ndarray | float | int | np.generic):
        return np.ravel(answer).astype(float).tolist()
    parts = (getattr(answer, name, 0) for name in ("k", "threshold", "expected", "std"))
    return numbers(tuple(parts))


@pytest.fixture(scope="module")
def as_python():
    """All answers with every kernel as Python, and the kernels that ran."""
    ran = set()

    def noted(method):
        def run(kernel, arguments):
            ran.add(kernel)
            return method(kernel, arguments)

        return run

    kernels = all_kernels()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "has_numba", lambda: False)
        for name in ("_in_python", "_as_python"):
            patch.setattr(Kernel, name, noted(getattr(Kernel, name)))
        for kernel in kernels.values():
            patch.setattr(kernel, "compiled_for", set())
        answers = {name: call() for name, call in CALLS.items()}
    return answers, {name for name, kernel in kernels.items() if kernel not in ran}


@pytest.mark.parametrize("name", CALLS)
def test_python_answers_as_compiled_code_does(as_python, name):
    answers, _ = as_python
    np.testing.assert_allclose(
        numbers(answers[name]), numbers(CALLS[name]()), rtol=1e-11, atol=1e-11
    )


def test_every_kernel_ran_as_python(as_python):
    _, missing = as_python
    assert missing == set()


def test_no_kernel_has_a_default_value_which_compiled_code_would_not_know():
    given = {name: inspect.signature(kernel.py_func) for name, kernel in all_kernels().items()}
    defaults = {
        f"{name}: {parameter}"
        for name, signature in given.items()
        for parameter in signature.parameters.values()
        if parameter.default is not parameter.empty
    }
    assert defaults == set()
