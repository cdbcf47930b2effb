"""python -m benchmarks [NAME …]: time argmaxf beside other work, print the table.

Each module of this folder with a `rows()` function is a benchmark; those with `ON_REQUEST = True`
(hours of data, other packages) run only when named.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
from pathlib import Path

import numpy as np
import sklearn

import argmaxf
from benchmarks.harness import table
from benchmarks.tracked import keep

SKIPPED = {"__init__", "__main__", "harness", "tracked"}


def main() -> int:
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    names = [name for name in names if name not in SKIPPED]
    modules = {name: importlib.import_module(f"benchmarks.{name}") for name in names}
    modules = {name: module for name, module in modules.items() if hasattr(module, "rows")}
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(modules))
    parser.add_argument("--out", type=Path, help="write the tables to this file too")
    parser.add_argument("--json", type=Path, help="keep the ratios for benchmarks.tracked")
    options = parser.parse_args()
    if unknown := set(options.names) - set(modules):
        parser.error(
            f"no benchmark is called {sorted(unknown)[0]!r}; there are {', '.join(modules)}"
        )
    chosen = options.names or [n for n, m in modules.items() if not getattr(m, "ON_REQUEST", False)]
    text = [header()]
    found = {}
    for name in chosen:
        title = (modules[name].__doc__ or name).strip().splitlines()[0]
        print(f"{name} …", file=sys.stderr, flush=True)
        found[name] = list(modules[name].rows())
        text.append(f"## {name}\n\n{title}\n\n{table(found[name])}")
        print(text[-1] + "\n", flush=True)
    if options.out:
        options.out.write_text("\n\n".join(text) + "\n", encoding="utf-8")
    if options.json:
        keep(options.json, header(), found)
    missed = [row.work for rows in found.values() for row in rows if row.verdict == "MISSED"]
    if missed:
        print(above_limit(missed), file=sys.stderr)
    return int(bool(missed))


def above_limit(missed: list[str]) -> str:
    """Say why the command fails, and what else may be the reason."""
    ratios = "1 ratio is" if len(missed) == 1 else f"{len(missed)} ratios are"
    return (
        f"{ratios} above the limit ({'; '.join(missed)}). On a machine that has other work this "
        "proves nothing: try again on an idle one."
    )


def header() -> str:
    versions = (
        f"argmaxf {argmaxf.__version__}, NumPy {np.__version__}, scikit-learn {sklearn.__version__}"
    )
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"
    return (
        f"# Benchmarks\n\n{versions}; {machine}. Ratios within one run; times are for orientation. "
        f"NumPy's vectors: {', '.join(vectors())}. With X86_V3 and X86_V4 (AVX2, AVX-512) np.sort "
        "is 6 to 12 times as fast as without, and ratios to it are that much higher."
    )


def vectors() -> list[str]:
    """Return the sets of vector instructions that NumPy has found on this machine."""
    known = np.show_config(mode="dicts")["SIMD Extensions"]
    return [*known.get("baseline", []), *known.get("found", [])]


if __name__ == "__main__":
    sys.exit(main())
