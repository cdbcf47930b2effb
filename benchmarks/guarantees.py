"""A guarantee beside no constraint: time. And, with --draws, how often guarantees hold.

    python -m benchmarks guarantees                  the time of a guarantee, n = 1e6
    python -m benchmarks.guarantees                  how often guarantees hold
    python -m benchmarks.guarantees --mapie --page docs/background/guarantee-proofs.md
                                                   the table of that page (group "peers")
    python -m benchmarks.guarantees --decimals 1     the same with scores that many rows share

Each draw is a labelled sample of n rows; its threshold is judged on the population, whose precision
is known at every threshold. The ladder of starts was chosen on normal scores; these are others.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import beta

from argmaxf import maximize_empirical_f, maximize_expected_f
from benchmarks.harness import Row, best_pair, write_between

PRECISION, CONFIDENCE = 0.9, 0.95
PEER_DRAWS = 200  # of the draws, the first ones: peers take ten times as long
MARKS = ("<!-- the simulation -->", "<!-- end of the simulation -->")
SIZES, RATES, SPREADS = (200, 500, 2_000, 10_000), (0.01, 0.1, 0.5), {"sharp": 0.2, "blurred": 1.0}


def rows() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    for rate, apart in [(0.1, 2.0), (0.5, 2.0), (0.5, 4.0)]:
        y = rng.random(1_000_000) < rate
        score = rng.normal(size=y.size) + apart * y
        ours, other = best_pair(
            partial(guaranteed, y, score), partial(maximize_empirical_f, y, score)
        )
        work = f"guarantee of precision, n = 1e6, {rate:.0%} positive, {apart:g} apart"
        yield Row(work, ours, "no constraint", other, at_most=3.0)
        both = {"min_precision": PRECISION, "min_recall": 0.1, "confidence_level": CONFIDENCE}
        ours, other = best_pair(
            partial(maximize_empirical_f, y, score, **both), partial(maximize_empirical_f, y, score)
        )
        work = work.replace("precision", "precision and recall")
        yield Row(work, ours, "no constraint", other, at_most=3.0)
    for kind, tied in {"one decimal": score.round(1), "yes or no": score > 2.0}.items():
        ours, other = best_pair(
            partial(guaranteed, y, tied), partial(maximize_empirical_f, y, tied)
        )
        work = f"guarantee of precision, n = 1e6, 50% positive, 4 apart, {kind}"
        yield Row(work, ours, "no constraint", other, at_most=3.0)
    yield from beside_mapie(rng)
    p = rng.beta(1, 1, 1_000_000)
    for name, chance in {
        "precision": {"min_precision": 0.7},
        "recall": {"min_recall": 0.8},
        "precision and recall": {"min_precision": 0.7, "min_recall": 0.8},
    }.items():
        options = {"confidence_level": 0.95, **chance}
        ours, other = best_pair(
            partial(maximize_expected_f, p, **options), partial(maximize_empirical_f, p > 0.5, p)
        )
        yield Row(f"chance constraint on {name}, n = 1e6", ours, "threshold, no constraint", other)


def beside_mapie(rng: np.random.Generator) -> Iterator[Row]:
    """Time a guarantee beside MAPIE's default, where installed; the last is out of reach."""
    if find_spec("mapie") is None:
        return
    for n, rate in [(2_000, 0.5), (10_000, 0.5), (10_000, 0.01)]:
        y, score = Population(rate, SPREADS["blurred"]).draw(n, rng)
        ours, other = best_pair(
            partial(tried, guaranteed, y, score), partial(tried, mapie("bonferroni_holm"), y, score)
        )
        found = "found" if tried(guaranteed, y, score) is not None else "none found"
        yield Row(f"guarantee of precision, n = {n:,}, {found}", ours, "MAPIE, default", other)


@dataclass(frozen=True)
class Population:
    """Rows whose score p ~ Beta(s π, s (1-π)) is the probability of their label; s the spread.

    With `decimals` it is rounded.
    """

    rate: float
    spread: float
    decimals: int | None = None

    @cached_property
    def table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Thresholds, and the exact precision and F1 of each."""
        a, b = self.spread * self.rate, self.spread * (1 - self.rate)
        t = np.linspace(0, 1, 100_001)[:-1]
        selected, true = beta(a, b).sf(t), self.rate * beta(a + 1, b).sf(t)
        return t, true / selected, 2 * true / (selected + self.rate)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        p = rng.beta(self.spread * self.rate, self.spread * (1 - self.rate), n)
        return rng.random(n) < p, p if self.decimals is None else p.round(self.decimals)

    def judge(self, threshold: float) -> tuple[float, float]:
        """Precision and F1 of a threshold in the population; above every p nothing is wrong."""
        t, precision, f = self.table
        if self.decimals is not None:  # the least p that is rounded to the threshold or above
            unit = 10.0**-self.decimals
            threshold = max(0.0, (np.ceil(threshold / unit - 1e-6) - 0.5) * unit)
        if threshold > t[-1]:
            return 1.0, 0.0
        return float(np.interp(threshold, t, precision)), float(np.interp(threshold, t, f))

    @property
    def best(self) -> float:
        """The highest F1 of a threshold that keeps the precision."""
        _, precision, f = self.table
        return float(f[precision >= PRECISION].max())


class Outcome(NamedTuple):
    """Of many draws: how often the constraint held, a threshold was found, and its F1 where it was.

    No threshold is no broken guarantee. `part` is the mean F1 over draws where one was found, as a
    part of the best F1 that keeps the precision.
    """

    held: float
    found: float
    part: float

    def __str__(self) -> str:
        part = f"{self.part:.2f}" if self.found else "–"
        return f"{self.held:.1%} · {self.found:.0%} · {part}"


Method = Callable[[np.ndarray, np.ndarray], float]


def plain(y: np.ndarray, score: np.ndarray) -> float:
    return maximize_empirical_f(y, score, min_precision=PRECISION).threshold


def guaranteed(y: np.ndarray, score: np.ndarray) -> float:
    options = {"min_precision": PRECISION, "confidence_level": CONFIDENCE}
    return maximize_empirical_f(y, score, **options).threshold


def mapie(procedure: object) -> Method:
    """MAPIE's control of precision by its 100 thresholds, recall to choose among the valid ones.

    For "split_fixed_sequence" half of the rows learn the order in which the others test.
    """
    from mapie.risk_control import BinaryClassificationController

    def threshold(y: np.ndarray, score: np.ndarray) -> float:
        control = BinaryClassificationController(
            lambda X: np.column_stack([1 - X[:, 0], X[:, 0]]),
            "precision",
            PRECISION,
            CONFIDENCE,
            best_predict_param_choice="recall",
            list_predict_params=np.linspace(0.99, 0, 100),
            fwer_method=procedure,
        )
        X, labels = score[:, None], y.astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if procedure == "split_fixed_sequence":
                half = len(y) // 2
                control.learn_fixed_sequence_order(X[:half], labels[:half], binary=True)
                X, labels = X[half:], labels[half:]
            control.calibrate(X, labels)
        if control.best_predict_param is None:
            raise ValueError("no valid threshold")
        return float(control.best_predict_param)

    return threshold


def simulate(
    population: Population, n: int, draws: int, methods: dict[str, Method], seed: int = 0
) -> dict[str, Outcome]:
    """Return the outcome of each method on the same draws; those of peers end sooner."""
    rng = np.random.default_rng(seed)
    results: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
    last = {name: min(draws, PEER_DRAWS) if is_peer(name) else draws for name in methods}
    for draw in range(draws):
        y, score = population.draw(n, rng)
        for name, method in methods.items():
            if draw >= last[name]:
                continue
            chosen = tried(method, y, score)
            if chosen is not None:
                results[name].append(population.judge(chosen))
    return {name: _outcome(judged, last[name], population.best) for name, judged in results.items()}


def is_peer(name: str) -> bool:
    """Whether a method is another library's."""
    return name.startswith("MAPIE")


def tried(method: Method, y: np.ndarray, score: np.ndarray) -> float | None:
    """Return the threshold, or None where none qualifies."""
    try:
        return method(y, score)
    except ValueError:
        return None


def _outcome(judged: list[tuple[float, float]], draws: int, best: float) -> Outcome:
    broken = sum(precision < PRECISION for precision, _ in judged)
    part = float(np.mean([f for _, f in judged])) / best if judged else float("nan")
    return Outcome(1 - broken / draws, len(judged) / draws, part)


def study(draws: int, methods: dict[str, Method], decimals: int | None = None) -> Iterable[str]:
    """Yield the lines of a table in Markdown."""
    yield "| n | positive | scores | " + " | ".join(methods) + " |"
    yield "| ---: | ---: | --- | " + " | ".join("---" for _ in methods) + " |"
    for n in SIZES:
        for rate in RATES:
            for name, spread in SPREADS.items():
                found = simulate(Population(rate, spread, decimals), n, draws, methods)
                yield (
                    f"| {n:,} | {rate:.0%} | {name} | "
                    + " | ".join(map(str, found.values()))
                    + " |"
                )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guarantees", description=__doc__)
    parser.add_argument("--draws", type=int, default=2_000)
    parser.add_argument("--decimals", type=int, help="round the scores")
    parser.add_argument("--page", type=Path, help="write the table into this page, between marks")
    parser.add_argument("--mapie", action="store_true", help="beside MAPIE, where it is installed")
    parser.add_argument("--split", action="store_true", help="its slow split sequence as well")
    options = parser.parse_args()
    methods: dict[str, Method] = {"plain constraint": plain, "guarantee": guaranteed}
    if options.mapie:
        from mapie.risk_control import FWERFixedSequenceTesting

        methods["MAPIE, default"] = mapie("bonferroni_holm")
        methods["MAPIE, fixed sequence"] = mapie("fixed_sequence")
        methods["MAPIE, fixed sequence, 5 starts"] = mapie(FWERFixedSequenceTesting(n_starts=5))
    if options.split:
        methods["MAPIE, split sequence"] = mapie("split_fixed_sequence")
    lines = []
    for line in study(options.draws, methods, options.decimals):
        print(line, flush=True)
        lines.append(line)
    if options.page:
        write_between(options.page, MARKS, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
