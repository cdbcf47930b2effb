"""python -m benchmarks.choosing: the study, from the fits to the tables of docs/choosing.md."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from benchmarks.choosing import scores
from benchmarks.choosing.sets import real_sets


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choosing", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("out/choosing"),
                        help="where scores are kept; a stopped run goes on from there")  # fmt: skip
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sets = list(real_sets())
    scores.collect(sets, options.folder, lambda text: print(text, file=sys.stderr, flush=True))


if __name__ == "__main__":
    main()
