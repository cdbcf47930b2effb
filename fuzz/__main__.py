"""python -m fuzz: attack argmaxf for some minutes; every finding is printed with its seed."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
import traceback
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np

from fuzz.kinds import KINDS
from fuzz.planted import PLANTED

SECONDS = 300  # a case that takes longer hangs


class Hangs(Exception):
    """Raised when a case takes too long."""


@contextmanager
def at_most(seconds):
    def stop(number, frame):
        raise Hangs(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def attack(kind, seed):
    """Run one case; return what is wrong, or None."""
    with tempfile.TemporaryDirectory(prefix="argmaxf-fuzz-") as folder:
        try:
            with at_most(SECONDS):
                KINDS[kind](np.random.default_rng([seed, *kind.encode()]), Path(folder))
        except KeyboardInterrupt:
            raise
        except BaseException:  # a panic of Rust is no Exception
            return traceback.format_exc()
    return None


def run(kinds, minutes, seed, plant=None, most=None):
    """Attack in turn until time is up; return the number of cases and the findings."""
    findings, cases, start = [], 0, time.monotonic()
    with PLANTED[plant].bug() if plant else nullcontext():
        while time.monotonic() - start < 60 * minutes and (
            most is None or cases < most * len(kinds)
        ):
            kind = kinds[cases % len(kinds)]
            wrong = attack(kind, seed + cases // len(kinds))
            if wrong:
                findings.append((kind, seed + cases // len(kinds), wrong))
                if plant:
                    break
            cases += 1
    return cases, findings


def plant_all(names, seed, most):
    """Plant each bug and see whether the kind that should catches it; return how many escaped."""
    escaped = 0
    for name in names:
        start = time.monotonic()
        cases, findings = run([PLANTED[name].kind], 10.0, seed, plant=name, most=most)
        verdict = f"caught after {cases + 1} cases" if findings else f"ESCAPED {cases} cases"
        escaped += not findings
        print(
            f"{name:34} {PLANTED[name].kind:10} {verdict}, {time.monotonic() - start:.1f} s",
            flush=True,
        )
    return escaped


def main():
    """Read the command line; exit 1 on a finding."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=None, help="of the first case of each kind")
    parser.add_argument("--kind", action="append", choices=KINDS, help="may be repeated")
    parser.add_argument("--once", action="store_true", help="one case of each kind")
    parser.add_argument("--plant", choices=["all", *PLANTED], help="plant a bug and see it caught")
    parser.add_argument("--most", type=int, default=400, help="cases until a planted bug escapes")
    given = parser.parse_args()
    seed = int(time.time()) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    if given.plant:
        names = list(PLANTED) if given.plant == "all" else [given.plant]
        return 1 if plant_all(names, seed, given.most) else 0
    kinds = given.kind or list(KINDS)
    cases, findings = run(kinds, given.minutes, seed, most=1 if given.once else None)
    for kind, where, wrong in findings:
        print(f"\n{kind}, again with: python -m fuzz --once --kind {kind} --seed {where}\n{wrong}")
    print(f"{cases} cases of {', '.join(kinds)}: {len(findings)} findings, seed {seed}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
