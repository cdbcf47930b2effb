"""How often 95 % intervals for a measure hold the value of the classifier, by simulation.

Averages over labels are drawn 30 % as often, with six of the measures.

python -m benchmarks.interval_coverage --page docs/background/interval-coverage.md
python -m benchmarks.interval_coverage --draws 200
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from argmaxf import f_interval
from argmaxf.measures import (
    MCC,
    BalancedAccuracy,
    Dice,
    FBeta,
    FowlkesMallows,
    GMean,
    IoU,
    Jaccard,
    Kappa,
    Measure,
    Tversky,
    UserDefined,
)
from benchmarks.harness import write_between

MARKS = "<!-- coverage: begin -->", "<!-- coverage: end -->"


def worse_of_both(tp: np.ndarray, k: np.ndarray, s: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The smaller of precision and recall, as a measure given by a user."""
    return tp / np.maximum(k, s)


MEASURES: tuple[Measure, ...] = (
    *(FBeta(1.0), FBeta(0.5), FBeta(2.0), Jaccard(), Tversky(0.3, 0.7), Dice(1.0), IoU(5.0)),
    *(FowlkesMallows(), MCC(), Kappa(), BalancedAccuracy(), GMean(), UserDefined(worse_of_both)),
)


SOME = (
    FBeta(1.0),
    FBeta(2.0),
    Dice(1.0),
    MCC(),
    GMean(),
    UserDefined(worse_of_both),
)  # of averages


class Setting(NamedTuple):
    """A classifier by its recall and false positive rate, on rows whose labels may be dependent."""

    n: int
    rate: float
    recall: float
    false_rate: float
    average: str | None = None
    labels: int = 1
    shared: float = 0.0  # of the variance of labels, and of errors, what labels of a row share

    def rates(self) -> np.ndarray:
        """The positive rate of each label, which differ by up to 30 % from their mean."""
        return self.rate * (1.0 + 0.3 * np.linspace(-1, 1, self.labels) * (self.labels > 1))

    def value(self, measure: Measure) -> float:
        """What the measure has for the expected counts."""
        rates = self.rates()
        true, false = rates * self.recall, (1.0 - rates) * self.false_rate
        counts = self.n * np.array([true, true + false, rates, np.ones(self.labels)])
        if self.average == "micro":
            counts = counts.sum(axis=1, keepdims=True)
        return float(np.mean(measure.value(*counts)))

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw labels and predictions."""
        y = self._normal(rng) < ndtri(self.rates())
        guess = self._normal(rng) < ndtri(np.where(y, self.recall, self.false_rate))
        return (y[:, 0], guess[:, 0]) if self.average is None else (y, guess)

    def _normal(self, rng: np.random.Generator) -> np.ndarray:
        own = rng.normal(size=(self.n, self.labels))
        return np.sqrt(self.shared) * rng.normal(size=(self.n, 1)) + np.sqrt(1 - self.shared) * own


GOOD, BETTER, NEARLY, SHARP = (0.8, 0.1), (0.97, 0.01), (0.999, 0.0005), (0.7, 0.002)
BINARY = [
    *(Setting(n, rate, *GOOD) for n in (20, 100, 500, 5000) for rate in (0.01, 0.05, 0.5)),
    *(Setting(n, rate, *BETTER) for n in (20, 100, 500, 5000) for rate in (0.05, 0.3)),
    *(Setting(n, rate, *NEARLY) for n in (20, 50, 200, 1000, 5000) for rate in (0.01, 0.3, 0.5)),
    *(Setting(n, 0.1, *SHARP) for n in (50, 500, 5000)),
]
AVERAGED = [
    *((60, 0.4, *GOOD, 3, 0.0), (200, 0.2, *BETTER, 10, 0.3), (1000, 0.05, *NEARLY, 5, 0.5)),
    *((400, 0.1, *SHARP, 5, 0.5), (200, 0.3, *GOOD, 5, 0.9), (100, 0.5, *NEARLY, 10, 0.9)),
    *((2000, 0.02, *GOOD, 5, 0.3), (5000, 0.01, *BETTER, 3, 0.0), (50, 0.5, *BETTER, 4, 0.0)),
    *((1000, 0.3, *NEARLY, 4, 0.0), (500, 0.1, *BETTER, 20, 0.3)),
]
SETTINGS = [
    *BINARY,
    *(
        Setting(n, rate, recall, false, average, labels, shared)
        for average in ("macro", "micro")
        for n, rate, recall, false, labels, shared in AVERAGED
    ),
]


class Held(NamedTuple):
    """Of many draws: how often the interval of each measure held, and was called reliable."""

    held: dict[Measure, float]
    reliable: float


def simulate(
    setting: Setting, draws: int, measures: tuple[Measure, ...] = MEASURES, seed: int = 0
) -> Held:
    """Count how often the intervals of a setting hold; equal draws of binary counts are one."""
    rng = np.random.default_rng(seed)
    held, reliable = dict.fromkeys(measures, 0), 0
    truth = {measure: setting.value(measure) for measure in measures}
    seen: dict[tuple[int, ...], tuple[list[Measure], bool]] = {}
    for _ in range(draws):
        y, guess = setting.draw(rng)
        key = tuple(map(int, (np.sum(y & guess), np.sum(guess), np.sum(y))))
        found = seen.get(key) if setting.average is None else None
        if found is None:
            intervals = {
                m: f_interval(y, guess, measure=m, average=setting.average) for m in measures
            }
            inside = [
                m for m, i in intervals.items() if i.low - 1e-12 <= truth[m] <= i.high + 1e-12
            ]
            found = seen[key] = inside, all(i.reliable for i in intervals.values())
        for measure in found[0]:
            held[measure] += 1
        reliable += found[1]
    return Held({measure: count / draws for measure, count in held.items()}, reliable / draws)


def studied(setting: Setting, draws: int) -> Held:
    """Simulate a setting; averages, whose labels cost as much as a draw each, less often."""
    if setting.average is None:
        return simulate(setting, draws)
    return simulate(setting, draws * 3 // 10, SOME)


def study(draws: int) -> Iterator[str]:
    """Yield the lines of the table."""
    columns = "average", "n", "positive", "recall", "false positives", "labels", "F1", "MCC"
    yield f"| {' | '.join(columns)} | G-mean | least |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for each in SETTINGS:
        held, reliable = studied(each, draws)
        least = min(held, key=held.__getitem__)
        shown = " | ".join(f"{held[m]:.1%}" for m in (FBeta(), MCC(), GMean(), least))
        note = "" if reliable > 0.99 else f"; reliable in {reliable:.0%}"
        labels = f"{each.labels}, {each.shared:g} shared" if each.average else "–"
        yield (
            f"| {each.average or 'binary'} | {each.n:,} | {each.rate:.0%} | {each.recall} | "
            f"{each.false_rate} | {labels} | {shown} ({least}{note}) |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.interval_coverage", description=__doc__
    )
    parser.add_argument("--draws", type=int, default=2_000)
    parser.add_argument("--page", type=Path, help="write the table into this page, between marks")
    options = parser.parse_args()
    lines = []
    for line in study(options.draws):
        print(line, flush=True)
        lines.append(line)
    if options.page:
        write_between(options.page, MARKS, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
