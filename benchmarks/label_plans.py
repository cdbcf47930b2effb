"""python -m benchmarks.label_plans: error and coverage of estimated F beside a uniform sample.

Scores with a known chance of being positive, rare and less rare, sharp and blurred. The plan gets
them as they are, overconfident (log-odds doubled), underconfident (halved), shifted by a factor of
4.5 of the odds, permuted (they carry no information), or saturated with noise. Or another model
selects the rows: one that knows the chances, or a noisy one. Each repetition draws new labels.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

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
OTHERS = ("random", "saturated", "selected by a better model", "selected by a noisy model")


def drawn(rate, sharpness, kind, rng):
    """Return scores, labels and the selected rows of one repetition."""
    z = rng.normal(size=ROWS) * sharpness
    z += brentq(lambda b: expit(z + b).mean() - rate, -80.0, 20.0)
    y = rng.random(ROWS) < expit(z)
    noise = rng.normal(size=ROWS)
    if kind == "selected by a better model":
        return expit(0.5 * z + noise - 1.0), y, expit(z) >= 0.3
    if kind == "selected by a noisy model":
        other = z + noise * sharpness * 0.5
        return expit(z), y, other >= np.quantile(other, 1.0 - rate)
    if kind == "random":
        p = expit(rng.permutation(z))
    elif kind == "saturated":
        p = expit(3.0 * (z + noise * sharpness * 0.5))
        p = np.where(p < 1e-3, 0.0, np.where(p > 1.0 - 1e-3, 1.0, p))
    else:
        shift, slope = DISTORTIONS[kind]
        p = expit(slope * z + shift)
    return p, y, maximize_expected_f(p).selected


def one(rate, sharpness, budget, kind, rng):
    """Return errors of a uniform sample and the plan, whether it holds, width, reliability."""
    p, y, selected = drawn(rate, sharpness, kind, rng)
    truth = 2 * np.count_nonzero(y & selected) / (np.count_nonzero(y) + np.count_nonzero(selected))
    plan = plan_labels(p, selected, budget, random_state=int(rng.integers(2**31)))
    found = estimate_f(y[plan.indices], plan)
    some = rng.choice(ROWS, budget, replace=False)
    uniform = f_interval(y[some], selected[some]).value
    held = found.low - 1e-12 <= truth <= found.high + 1e-12
    return uniform - truth, found.value - truth, held, found.high - found.low, found.reliable


def row(name, results):
    """Return a row of a table: errors, coverage, width, and coverage where it is reliable."""
    uniform, error, held, width, reliable = np.array(results, float).T
    where = f"{held[reliable == 1].mean():.3f}" if reliable.any() else "–"
    rmse = f"{np.sqrt(np.mean(uniform**2)):.3f} | {np.sqrt(np.mean(error**2)):.3f}"
    means = f"{width.mean():.3f} | {held.mean():.3f} | {reliable.mean():.0%}"
    return f"| {name} | {rmse} | {means} | {where} |"


def main():
    """Print a row for each setting, and one for each kind of scores and budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--budgets", type=int, nargs="*", default=BUDGETS)
    parser.add_argument("--kinds", nargs="*", default=(*DISTORTIONS, *OTHERS))
    options = parser.parse_args()
    head = "RMSE, uniform | RMSE, plan | width | coverage | reliable | coverage where reliable"
    print(f"| setting | {head} |\n| --- |" + " ---: |" * 6)
    together = defaultdict(list)
    for kind in options.kinds:
        for budget in options.budgets:
            for rate, sharpness in SETTINGS:
                rng = np.random.default_rng(0)
                results = [
                    one(rate, sharpness, budget, kind, rng) for _ in range(options.repetitions)
                ]
                together[kind, budget] += results
                name = f"{rate:.1%} positives, spread {sharpness:g}, {kind}, {budget} labels"
                print(row(name, results), flush=True)
    print(f"\n| scores, labels | {head} |\n| --- |" + " ---: |" * 6)
    for (kind, budget), results in together.items():
        print(row(f"{kind}, {budget}", results))


if __name__ == "__main__":
    main()
