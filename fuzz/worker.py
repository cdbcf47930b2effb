"""One process for many commands that may end it: to start it takes longer than what it does."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys

PLANT = ""  # code that plants a bug in other processes
SECONDS = 60  # of computing, which one command may take
READ = """
import json, signal, sys
from fuzz.asking import command
answers, sys.stdout = sys.stdout, sys.stderr
for line in sys.stdin:
    signal.setitimer(signal.ITIMER_PROF, {seconds})
    answer = command(*json.loads(line))
    signal.setitimer(signal.ITIMER_PROF, 0)
    print(json.dumps(answer), file=answers, flush=True)
"""

_running: dict[str, subprocess.Popen] = {}  # by the bug that is planted in it


def in_worker(*words):
    """Run the command in another process; return its exit code and what it printed."""
    process = _running.get(PLANT)
    if process is None or process.poll() is not None:
        process = _running[PLANT] = subprocess.Popen(
            [sys.executable, "-c", PLANT + READ.format(seconds=SECONDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    process.stdin.write(json.dumps([str(word) for word in words]) + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise AssertionError(f"the process ended with {process.wait()}: {words}")
    return json.loads(answer)


@atexit.register
def stop():
    """End the processes."""
    for process in _running.values():
        process.kill()
        process.wait()
    _running.clear()
