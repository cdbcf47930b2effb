"""Label plans: error and coverage of estimated F beside a uniform sample.

Scores with a known chance of being positive, rare and less rare, sharp and blurred; given to the
plan as they are, overconfident (log-odds doubled), underconfident (halved) or shifted by a factor
of 4.5 of the odds, up and down. Each repetition draws new labels.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from argmaxf import f_interval, maximize_expected_f
from argmaxf.monitoring.labelling import estimate_f, plan_labels

ROWS = 20_000
SETTINGS = ((0.001, 8.0), (0.01, 6.0), (0.01, 2.0), (0.05, 4.0), (0.2, 3.0))
BUDGETS = (50, 200, 500, 2000)
DISTORTIONS = {
    "calibrated": (0.0, 1.0),
    "overconfident": (0.0, 2.0),
    "underconfident": (0.0, 0.5),
    "too high": (1.5, 1.0),
    "too low": (-1.5, 1.0),
}


def scores(rate, sharpness, rng):
    """Draw log-odds with a given spread and mean probability."""
    z = rng.normal(size=ROWS) * sharpness
    return z + brentq(lambda b: expit(z + b).mean() - rate, -80.0, 20.0)


def one(rate, sharpness, budget, shift, slope, rng):
    """Return the plan's error, whether its interval holds, a uniform sample's error, the width."""
    z = scores(rate, sharpness, rng)
    y = rng.random(ROWS) < expit(z)
    p = expit(slope * z + shift)
    selected = maximize_expected_f(p).selected
    truth = 2 * np.count_nonzero(y & selected) / (np.count_nonzero(y) + np.count_nonzero(selected))
    plan = plan_labels(p, selected, budget, random_state=int(rng.integers(2**31)))
    found = estimate_f(y[plan.indices], plan)
    some = rng.choice(ROWS, budget, replace=False)
    uniform = f_interval(y[some], selected[some]).value
    return (
        found.value - truth,
        found.low <= truth <= found.high,
        uniform - truth,
        found.high - found.low,
    )


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--budgets", type=int, nargs="*", default=BUDGETS)
    options = parser.parse_args()
    print(
        "| positives | spread | budget | scores | RMSE, uniform | RMSE, plan | coverage | width |"
    )
    print("| ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    for rate, sharpness in SETTINGS:
        for budget in options.budgets:
            for name, (shift, slope) in DISTORTIONS.items():
                rng = np.random.default_rng(0)
                drawn = (
                    one(rate, sharpness, budget, shift, slope, rng)
                    for _ in range(options.repetitions)
                )
                error, holds, uniform, width = np.array(list(drawn)).T
                rmse = f"{np.sqrt(np.mean(uniform**2)):.3f} | {np.sqrt(np.mean(error**2)):.3f}"
                row = f"| {rate:.1%} | {sharpness:g} | {budget} | {name} | {rmse}"
                print(f"{row} | {holds.mean():.3f} | {width.mean():.3f} |", flush=True)


if __name__ == "__main__":
    main()
