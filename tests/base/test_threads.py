"""Concurrent calls from threads and from forked workers, under every threading layer of numba."""

import importlib
import os
import subprocess
import sys

import pytest

from argmaxf._base.compiled import has_numba

pytestmark = [
    pytest.mark.skipif(not has_numba(), reason="nothing is compiled without numba"),
    pytest.mark.slow,
]

SETTING = """
import os, signal, sys, threading, time, warnings
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import argmaxf
warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12: fork with threads

rng = np.random.default_rng(0)
LARGE = [rng.beta(0.5, 5.0, n) for n in (30_000, 90_000, 300_000)]
ROWS = rng.beta(0.5, 5.0, (800, 40))
Y = rng.random(LARGE[1].size) < LARGE[1]

def answers():
    sets = [argmaxf.maximize_expected_f(p) for p in LARGE]
    rows = argmaxf.maximize_expected_f(ROWS, average="samples")
    found = argmaxf.maximize_empirical_f(Y, LARGE[1])
    mcc = argmaxf.maximize_expected_f(LARGE[0], measure="mcc")
    return [(d.k, d.expected) for d in sets], rows.k.tolist(), found.threshold, mcc.k

def forked(work):
    # Return whether a forked child did the work within four minutes.
    child = os.fork()
    if child == 0:
        signal.alarm(240)
        os._exit(0 if work() else 1)
    return os.waitpid(child, 0)[1] == 0
"""

LAYER = """
import numba

@numba.njit(parallel=True)
def total(x):
    s = 0.0
    for i in numba.prange(x.size):
        s += x[i]
    return s

assert total(np.ones(1000)) == 1000.0
assert numba.threading_layer() == sys.argv[1]
with ThreadPoolExecutor(6) as pool:  # the first calls, so that all of them want to compile
    found = [future.result() for future in [pool.submit(answers) for _ in range(6)]]
expected = answers()
assert all(each == expected for each in found)
with ThreadPoolExecutor(4) as pool:
    busy = [pool.submit(answers) for _ in range(8)]
    assert all(forked(lambda: answers() == expected) for _ in range(3))
    assert all(future.result() == expected for future in busy)
"""

COMPILING = """
from argmaxf._base.compiled import Kernel
started, compile = threading.Event(), Kernel._compile

def slowly(kernel, arguments):
    with Kernel.lock:
        started.set()
        time.sleep(0.05)
        return compile(kernel, arguments)

Kernel._compile = slowly
thread = threading.Thread(target=answers)
thread.start()
started.wait()
assert forked(lambda: argmaxf.maximize_expected_f(LARGE[1]).k > 0)
thread.join()
"""


def run(code, *arguments, **environment):
    command = [sys.executable, "-c", SETTING + code, *arguments]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are not forked here")
@pytest.mark.parametrize(
    ("layer", "module"), [("omp", "omppool"), ("tbb", "tbbpool"), ("workqueue", "workqueue")]
)
def test_threads_and_forked_workers_get_the_same_answers(layer, module):
    try:
        importlib.import_module(f"numba.np.ufunc.{module}")
    except ImportError as error:
        pytest.skip(str(error))
    run(LAYER, layer, NUMBA_THREADING_LAYER=layer, NUMBA_NUM_THREADS="2")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are not forked here")
def test_a_worker_forked_while_another_thread_compiles_does_not_hang(tmp_path):
    run(COMPILING, NUMBA_CACHE_DIR=str(tmp_path))
