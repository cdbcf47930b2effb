"""python -m benchmarks.choosing: make the study of docs/background/method-study.md.

Needs the packages of the dependency group `study`. Everything that was fitted is kept in a folder,
and a run that was stopped goes on from there; a full run takes about twenty minutes of one core.
`--synthetic` prints the smaller tables on the rows of the paper's Table 1 instead, `--variants`
those of the blend's parts. `--unseen` takes sets which nothing was chosen on; give it a folder of
its own.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from benchmarks.choosing import scores, synthetic, variants
from benchmarks.choosing.labels import trials
from benchmarks.choosing.rules import Seen
from benchmarks.choosing.sets import real_sets
from benchmarks.choosing.tables import Study, report
from benchmarks.choosing.unseen_sets import unseen_sets
from benchmarks.harness import write_between

MARKS = ("<!-- the study's tables -->", "<!-- end of the study's tables -->")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choosing", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("out/choosing"),
                        help="where what was fitted is kept")  # fmt: skip
    parser.add_argument("--page", type=Path, help="write the tables into this page, between marks")
    parser.add_argument("--synthetic", action="store_true", help="Table 1's rows instead")
    parser.add_argument("--variants", action="store_true", help="parts of the blend instead")
    parser.add_argument("--unseen", action="store_true", help="sets which nothing was chosen on")
    parser.add_argument("--splits", type=int, default=scores.SPLITS, help="of each set, at most 3")
    parser.add_argument("--positives", type=int, help="only sets with at most so many")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.synthetic:
        synthetic.show_all()
        return
    sets = list(unseen_sets() if options.unseen else real_sets())
    if options.positives is not None:
        sets = [of for of in sets if of.y.sum() <= options.positives]
    scores.collect(sets, options.folder, _say, options.splits)
    if options.variants:
        print(variants.report(variants.cells(sets, options.folder)))
        return
    found = trials([(of.name, of.family) for of in sets], options.folder, _say)
    text = report(Study.of([Seen.of(trial) for trial in found]))
    print(text)
    if options.page:
        write_between(options.page, MARKS, text)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
