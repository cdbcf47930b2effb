"""python -m tests.without_numba [FILE …]: the small half of the suite where numba is missing.

Of each test the first parameters run, as long as they take no more than half a second; hypothesis
tries five examples.
"""

import math
import sys
import time

import pytest

EXPECTED = ("chance_constraints", "structured_sets", "top_sets", "worst_case")
FILES = [
    *("tests/measures", "tests/theory", "tests/test_validation.py"),
    *(f"tests/expected/test_{name}.py" for name in EXPECTED),
]
OPTIONS = ["-q", "-p", "no:cacheprovider", "-W", "ignore:numba cannot be imported"]
SECONDS = 0.5  # of the processor, for one test


class SmallHalf:
    """A plugin of pytest that leaves out what is large: a kernel may be the end of a test."""

    ends = math.inf

    def pytest_sessionstart(self):
        from argmaxf._base.compiled import Kernel

        def stopping(method):
            def run(kernel, arguments):
                if time.process_time() > self.ends:
                    pytest.skip("large")
                return method(kernel, arguments)

            return run

        Kernel._in_python, Kernel._as_python = map(stopping, (Kernel._in_python, Kernel._as_python))

    def pytest_collection_modifyitems(self, items):
        from hypothesis import settings

        settings.register_profile("small", settings.default, max_examples=5)
        settings.load_profile("small")
        first = {item.nodeid.partition("[")[0]: item for item in reversed(items)}
        items[:] = reversed(first.values())

    def pytest_runtest_call(self, item):
        by_hypothesis = getattr(item.obj, "is_hypothesis_test", False)  # and not to be stopped
        self.ends = math.inf if by_hypothesis else time.process_time() + SECONDS


if __name__ == "__main__":
    sys.modules["numba"] = None
    sys.exit(pytest.main([*OPTIONS, *(sys.argv[1:] or FILES)], plugins=[SmallHalf()]))
