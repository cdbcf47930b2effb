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

from fuzz.kinds import KINDS, unavailable
from fuzz.planted import PLANTED

COMPUTING = (
    60  # seconds of this process, not of others on the machine: a case that needs more hangs
)
WAITING = 1_800  # seconds by the clock: a case that does nothing for so long hangs too


class Hangs(Exception):
    """Raised when a case takes too long."""


@contextmanager
def limited():
    """Stop a case that computes or waits too long."""

    def stop(number, frame):
        raise Hangs(f"more than {COMPUTING} s of computing, or {WAITING} s of waiting")

    timers = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}
    before = {each: signal.signal(each, stop) for each in timers}
    signal.setitimer(signal.ITIMER_PROF, COMPUTING)
    signal.setitimer(signal.ITIMER_REAL, WAITING)
    try:
        yield
    finally:
        for each, timer in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(each, before[each])


def attack(kind, seed):
    """Run one case; return what is wrong, or None."""
    with tempfile.TemporaryDirectory(prefix="argmaxf-fuzz-") as folder:
        try:
            with limited():
                KINDS[kind](np.random.default_rng([seed, *kind.encode()]), Path(folder))
        except KeyboardInterrupt:
            raise
        except BaseException:  # a panic of Rust is no Exception
            return traceback.format_exc()
    return None


class Turns:
    """Whose turn it is: the kind that has had the least time, so that cheap ones come more often.

    The seeds of a kind run on from the first, whatever the others do.
    """

    def __init__(self, kinds, most=None):
        self.spent = dict.fromkeys(kinds, 0.0)
        self.cases = dict.fromkeys(kinds, 0)
        self.most = most

    def next(self):
        """Return the kind whose turn it is, or None if all have had enough."""
        left = [k for k in self.spent if self.most is None or self.cases[k] < self.most]
        return min(left, key=self.spent.__getitem__, default=None)

    def table(self):
        """Return what each kind has had."""
        lines = (f"  {k:10} {self.cases[k]:6} cases {s:7.1f} s" for k, s in self.spent.items())
        return "\n".join(lines)


def run(kinds, minutes, seed, plant=None, most=None):
    """Attack in turn until time is up; return the turns taken and the findings."""
    turns, findings, start = Turns(kinds, most), [], time.monotonic()
    with PLANTED[plant].bug() if plant else nullcontext():
        while time.monotonic() - start < 60 * minutes and (kind := turns.next()):
            where, began = seed + turns.cases[kind], time.monotonic()
            wrong = attack(kind, where)
            turns.spent[kind] += time.monotonic() - began
            turns.cases[kind] += 1
            if wrong:
                findings.append((kind, where, wrong))
                if plant:
                    break
                print(
                    f"\n{kind}, again: python -m fuzz --once --kind {kind} --seed {where}\n{wrong}"
                )
    return turns, findings


def plant_all(names, seed, most):
    """Plant each bug and see whether the kind that should catches it; return how many escaped."""
    escaped = 0
    for name in names:
        start, kind = time.monotonic(), PLANTED[name].kind
        turns, findings = run([kind], 10.0, seed, plant=name, most=most)
        verdict = "caught after" if findings else "ESCAPED"
        if findings and attack(*findings[0][:2]):
            verdict, findings = "NOT CAUGHT, the case fails without it, too:", []
        escaped += not findings
        took = f"{turns.cases[kind]} cases, {time.monotonic() - start:.1f} s"
        print(f"{name:34} {kind:10} {verdict} {took}", flush=True)
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
    for kind, why in unavailable(kinds).items():
        print(f"{kind} is left out: {why}")
        kinds = [each for each in kinds if each != kind]
    turns, findings = run(kinds, given.minutes, seed, most=1 if given.once else None)
    print(turns.table())
    cases = sum(turns.cases.values())
    print(f"{cases} cases of {', '.join(kinds)}: {len(findings)} findings, seed {seed}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
