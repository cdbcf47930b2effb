"""python -m reproduction: the paper's tables and figures again, the printed number beside ours."""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from reproduction import run


def main(arguments: list[str] | None = None) -> int:
    """Run experiments; an interrupted run goes on where it stopped."""
    parser = argparse.ArgumentParser("python -m reproduction", description=main.__doc__)
    names = " ".join(run.NAMES)
    parser.add_argument("names", nargs="+", metavar="NAME", help=f"{names}, or all")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the results")
    parser.add_argument("--seeds", type=int, help="repetitions; by default what each table needs")
    parser.add_argument("--quick", action="store_true", help="a look: few seeds and labels")
    parser.add_argument("--jobs", type=int, help="processes at once; by default one per core")
    parser.add_argument("--data-dir", help="folder with the data sets, before ARGMAXF_DATA")
    chosen = parser.parse_args(arguments)
    plan = run.Plan(chosen.seeds, chosen.quick, chosen.data_dir)
    jobs = (os.cpu_count() or 1) if chosen.jobs is None else chosen.jobs
    try:
        _check_extras()
        found = run.reproduce(chosen.names, chosen.out, plan, jobs, progress=sys.stderr.isatty())
    except (ValueError, OSError) as error:
        print(f"reproduction: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("reproduction: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    for name, report in found.reports.items():
        print(f"{name}: {report.headline}")
    total, trained = (
        sum(seconds[part] for seconds in found.seconds.values() for part in parts)
        for parts in (("total",), ("fit", "soft F"))
    )
    share = 100 * trained / max(total, 1e-9)
    print(f"{total:.0f} s in all processes, {share:.0f} % of it training models")
    print(f"Tables, figures and verdicts: {chosen.out / 'results.md'}")
    return 0


def _check_extras() -> None:
    """Say what is missing before any work is done."""
    missing = [name for name in ("matplotlib", "pooch", "arff") if find_spec(name) is None]
    if missing:
        raise ValueError(f"{', '.join(missing)} missing: pip install matplotlib pooch liac-arff")


if __name__ == "__main__":
    sys.exit(main())
