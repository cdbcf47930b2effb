"""What every method said about every row, kept beside the scores it was worked out from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.choosing.methods import MODELS, Labels, all_methods, f1
from benchmarks.choosing.scores import SPLITS

VERSION = "4"  # of the methods; another number works everything out again


@dataclass(frozen=True)
class Trial:
    """One split of one set with one model: the truth, and what each method said."""

    name: str
    family: str
    model: str
    y: np.ndarray
    y_test: np.ndarray
    labels: dict[str, Labels]

    def test_f1(self, method: str) -> float:
        """Return F1 on the test rows, in points."""
        return 100 * f1(self.y_test, self.labels[method][1])


def trials(names: list[tuple[str, str]], folder: Path, say: Callable[[str], None]) -> list[Trial]:
    """Return all trials of the sets given by name and family, worked out where not kept."""
    found: list[Trial] = []
    for done, (name, family) in enumerate(names, start=1):
        for seed in range(SPLITS):
            scores = folder / f"{name}-{seed}.npz"
            found += _of_split(name, family, scores) if scores.exists() else []
        if done % 20 == 0:
            say(f"{done}/{len(names)} sets worked out")
    return found


def _of_split(name: str, family: str, scores: Path) -> list[Trial]:
    kept = scores.with_suffix(f".labels{VERSION}.npz")
    if not kept.exists():
        _work_out(scores, kept)
    with np.load(kept) as data:
        y, y_test = data["y"], data["y_test"]
        return [
            Trial(name, family, model, y, y_test, _unpacked(data, model, len(y), len(y_test)))
            for model in MODELS
        ]


def _work_out(scores: Path, kept: Path) -> None:
    with np.load(scores) as data:
        found = dict(data)
    packed = {"y": found["y"], "y_test": found["y_test"]}
    for model in MODELS:
        for method, parts in all_methods(found, model).items():
            packed[f"{model}/{method}"] = np.packbits(np.concatenate(parts))
    part = kept.with_suffix(".part.npz")
    np.savez(part, **packed)
    part.rename(kept)


def _unpacked(data: dict[str, np.ndarray], model: str, n: int, n_test: int) -> dict[str, Labels]:
    labels = {}
    for key in data:
        if key.startswith(f"{model}/"):
            rows = np.unpackbits(data[key], count=n + n_test).astype(bool)
            labels[key.removeprefix(f"{model}/")] = (rows[:n], rows[n:])
    return labels
