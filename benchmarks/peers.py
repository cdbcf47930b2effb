"""Other packages on the families where they fail: time, and expected F1 lost against the optimum.

Runs what is installed: pip install --group peers. Regret is (best E[F1] - theirs) / best.
`python -m benchmarks.peers` prints the table of docs/background/other-packages.md: regret and time
for one set.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from argmaxf import expected_f, maximize_expected_f
from benchmarks.harness import Row, best, figure
from reproduction.references import descending, ye_2012

ON_REQUEST = True
SETS = 50  # sets of each family
FEW = {"RankSEG TRNA, unpruned": 5}  # of what takes up to a second for each


def families() -> dict[str, np.ndarray]:
    """Return sets of probabilities, one in each row."""
    rng = np.random.default_rng(0)
    return {
        "Beta(.5,5), n = 10": rng.beta(0.5, 5, (SETS, 10)),
        "Beta(.5,5), n = 30": rng.beta(0.5, 5, (SETS, 30)),
        "Beta(.5,5), n = 100": rng.beta(0.5, 5, (SETS, 100)),
        "Beta(.1,5), n = 30": rng.beta(0.1, 5, (SETS, 30)),
        "rare, n = 100": rng.dirichlet(np.ones(100), SETS) * 0.2,
        "rare, n = 500": rng.dirichlet(np.ones(500), SETS) * 0.2,
        "one and a tail": np.column_stack([np.full(SETS, 0.9), rng.random((SETS, 200)) * 0.02]),
        "all equal": np.repeat(rng.random((SETS, 1)), 50, axis=1),
        "tiny": rng.random((SETS, 50)) * 1e-6,
    }


def rows() -> Iterator[Row]:
    for family, every in families().items():
        for name, decide in peers().items():
            sets = every[: FEW.get(name, SETS)]
            (ours, _), (seconds, lost) = measured(argmaxf, sets), measured(decide, sets)
            note = f"loses {lost:.2%} of E[F1]"
            yield Row(f"{family}: {len(sets)} sets", ours, name, seconds, note=note)


def measured(decide: Callable[[np.ndarray], np.ndarray], sets: np.ndarray) -> tuple[float, float]:
    """Return the seconds that a package takes for all sets, and the part of E[F1] it loses."""
    # What is loaded and compiled at first is not its work; argmaxf compiles from 20,000 numbers on.
    decide(np.tile(sets, (21_000 // sets.size + 1, 1)) if decide is argmaxf else sets[:1])
    return best(lambda: decide(sets), 3), max(0.0, regret(sets, decide(sets)))


def argmaxf(sets: np.ndarray) -> np.ndarray:
    return maximize_expected_f(sets, average="samples").selected


def page() -> Iterator[str]:
    """Yield the lines of the table: what is lost, and below it the time for one set."""
    sets = families()
    yield "| | " + " | ".join(sets) + " |"
    yield "| --- |" + " ---: |" * len(sets)
    for name, decide in {"argmaxf": argmaxf, **peers()}.items():
        found = [measured(decide, every[: FEW.get(name, SETS)]) for every in sets.values()]
        times = [figure(seconds / FEW.get(name, SETS), "s") for seconds, _ in found]
        lost = [f"{part:.2%}".replace("%", " %") for _, part in found]
        cells = " | ".join(f"{a}<br>{b}" for a, b in zip(lost, times, strict=True))
        yield f"| {name} | {cells} |"


def regret(sets: np.ndarray, selected: np.ndarray) -> float:
    """Return the mean part of the best expected F1 that a selection loses."""
    top = maximize_expected_f(sets, average="samples").expected
    theirs = [expected_f(p, s).mean for p, s in zip(sets, selected, strict=True)]
    return float(np.mean((top - theirs) / top))


def peers() -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Return the ways to decide that are installed here."""
    ways: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "threshold 0.5": lambda sets: sets >= 0.5,
        "Algorithm 1 in NumPy": algorithm_1,
    }
    if importlib.util.find_spec("rankseg"):
        ways["RankSEG, default"] = rankseg
        ways["RankSEG RMA, unpruned"] = partial(rankseg, pruning_prob=0.0)
        ways["RankSEG TRNA, unpruned"] = partial(rankseg, solver="TRNA", pruning_prob=0.0)
    if importlib.util.find_spec("xcolumns"):
        ways["xCOLUMNs, default"] = xcolumns
        ways["xCOLUMNs, greedy start"] = partial(xcolumns, init_y_pred="greedy")
    return ways


def algorithm_1(sets: np.ndarray) -> np.ndarray:
    selected = []
    for p in sets:
        k = int(np.argmax(ye_2012(p)))
        selected.append(p >= descending(p)[k - 1])
    return np.array(selected)


def rankseg(sets: np.ndarray, **options: object) -> np.ndarray:
    """RankSEG, each set a one-class image of one row.

    Its default, made for images, selects nothing where no probability is above `pruning_prob` = .5;
    unpruned it is at its best here.
    """
    import torch
    from rankseg import RankSEG

    solver = RankSEG(metric="dice", output_mode="multilabel", **options)
    maps = torch.as_tensor(sets, dtype=torch.float64).reshape(len(sets), 1, 1, -1)
    return solver.predict(maps).numpy().reshape(sets.shape).astype(bool)


def xcolumns(sets: np.ndarray, **options: object) -> np.ndarray:
    """Macro-F1 by block coordinate ascent, each set a label (a column).

    Every start and tolerance ends at the same labels here: the best by its own aim, F of the
    expected counts. The greedy start gets there sooner.
    """
    from xcolumns.block_coordinate import predict_optimizing_macro_f1_score_using_bc

    columns = np.ascontiguousarray(sets.T)
    answer = predict_optimizing_macro_f1_score_using_bc(columns, k=0, seed=0, **options)
    answer = answer[0] if isinstance(answer, tuple) else answer
    return np.asarray(answer).T.astype(bool)


if __name__ == "__main__":
    print(*page(), sep="\n")
