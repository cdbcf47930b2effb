"""python -m benchmarks.demo: the demo's table on more samples.

Its data and model were chosen on samples (seeds) 0 to 4; those here decided nothing.
"""

from __future__ import annotations

import warnings

from argmaxf.cli.demo import cards, measured

FIRST, SAMPLES = 100, 3


def show() -> None:
    """Print F1 of every method, and what was predicted and guaranteed."""
    found = measured([cards(FIRST + i) for i in range(SAMPLES)])
    for method, each in found.pop("methods").items():
        difference = f"{100 * each['difference']:+.1f} ± {100 * each['plus_minus']:.1f}"
        print(f"| {method} | {each['f1']:.3f} | {difference} | {each['seconds']:.1f} |")
    print(found)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    show()
