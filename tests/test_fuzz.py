"""The fuzz command: it finds nothing in a few cases, and planted bugs do not escape it."""

import subprocess
import sys

import pytest

from fuzz.__main__ import attack, run
from fuzz.kinds import KINDS
from fuzz.planted import PLANTED
from tests import ROOT

SEEDS = {"large text is no key": 190}  # one case in some hundred shows it
SLOW = {"stream", "damage", "spark"}  # other processes


@pytest.mark.parametrize("kind", sorted(set(KINDS) - SLOW))
def test_a_few_cases_find_nothing(kind):
    for seed in range(3):
        assert attack(kind, seed) is None


@pytest.mark.parametrize("name", [name for name in PLANTED if PLANTED[name].kind not in SLOW])
def test_a_planted_bug_is_caught(name):
    _, findings = run([PLANTED[name].kind], 5.0, SEEDS.get(name, 1), plant=name, most=100)
    assert findings


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PLANTED if PLANTED[name].kind in SLOW])
def test_a_planted_bug_of_processes_is_caught(name):
    _, findings = run([PLANTED[name].kind], 30.0, 1, plant=name, most=400)
    assert findings


def test_the_seed_is_printed_and_repeats():
    words = [sys.executable, "-m", "fuzz", "--once", "--kind", "ties", "--kind", "writers"]
    ended = subprocess.run([*words, "--seed", "7"], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout
    assert "seed 7" in ended.stdout
    assert "2 cases of ties, writers: 0 findings" in ended.stdout
