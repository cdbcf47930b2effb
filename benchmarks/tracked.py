"""Benchmarks over time: python -m benchmarks.tracked OLD NEW shows what changed between two runs.

`python -m benchmarks --json FILE` keeps a run. Times depend on the machine and on the day; ratios
to other work of the same run much less, so they are what is compared.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import Row

NOISE = 1.25  # two runs on one machine differ by up to about this factor


class Key(NamedTuple):
    """Which line of which benchmark."""

    benchmark: str
    work: str
    beside: str


def keep(path: Path, about: str, tables: Mapping[str, Iterable[Row]]) -> None:
    """Write every row of a run, and what it ran on."""
    rows = [
        {"benchmark": name, **row._asdict(), "ratio": row.ratio}
        for name, table in tables.items()
        for row in table
    ]
    path.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")


def kept(path: Path) -> dict[Key, float]:
    """Return the ratio of every line of a run that was kept."""
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return {Key(r["benchmark"], r["work"], r["beside"]): r["ratio"] for r in rows}


def comparison(old: Mapping[Key, float], new: Mapping[Key, float]) -> str:
    """Return a Markdown table of all lines, those that became slower first."""
    lines = ["| | work | compared to | before | now | |", "| --- | --- | --- | ---: | ---: | --- |"]
    for key in sorted({*old, *new}, key=lambda k: (-_factor(old, new, k), k)):
        before, now = (f"{run[key]:.3g}" if key in run else "–" for run in (old, new))
        lines.append(f"| {' | '.join(key)} | {before} | {now} | {_word(old, new, key)} |")
    return "\n".join(lines)


def _factor(old: Mapping[Key, float], new: Mapping[Key, float], key: Key) -> float:
    """Return how many times as slow a line became; 1 where one run does not have it."""
    if key not in old or key not in new or not old[key]:
        return 1.0
    factor = new[key] / old[key]
    return factor if math.isfinite(factor) else 1.0


def _word(old: Mapping[Key, float], new: Mapping[Key, float], key: Key) -> str:
    """Return what happened to a line, in a word or two."""
    if key not in old or key not in new:
        return "new" if key in new else "gone"
    factor = _factor(old, new, key)
    if 1 / NOISE <= factor <= NOISE:
        return ""
    return f"{factor:.2g} × slower" if factor > 1 else f"{1 / factor:.2g} × faster"


def main() -> int:
    """Show what changed between two runs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tracked", description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    options = parser.parse_args()
    print(comparison(kept(options.old), kept(options.new)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
