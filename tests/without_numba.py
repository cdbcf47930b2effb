"""python -m tests.without_numba: the small half of the suite where numba cannot be imported.

All kernels run as Python, where coverage counts them; those that no test called are printed. Run
by `tests/base/test_without_numba.py`, and by hand with other files or options of pytest.
"""

import importlib
import pkgutil
import sys

import pytest

sys.modules["numba"] = None

import argmaxf  # noqa: E402
from argmaxf._base.compiled import Kernel  # noqa: E402

FILES = ["tests/measures", "tests/theory", "tests/expected", "tests/test_prior.py"]
OPTIONS = ["-q", "-p", "no:cacheprovider", "-W", "ignore:numba cannot be imported"]


def all_kernels():
    """Return every kernel of the library by its name."""
    names = [m.name for m in pkgutil.walk_packages(argmaxf.__path__, "argmaxf.")]
    modules = [importlib.import_module(name) for name in names if "triton" not in name]
    found = {v for module in modules for v in vars(module).values() if isinstance(v, Kernel)}
    return {f"{kernel.__module__}.{kernel.__name__}": kernel for kernel in found}


def main(arguments):
    ran = set()

    def noted(method):
        def run(self, arguments):
            ran.add(self)
            return method(self, arguments)

        return run

    Kernel._in_python, Kernel._as_python = map(noted, (Kernel._in_python, Kernel._as_python))
    code = pytest.main([*OPTIONS, *(arguments or FILES)])
    missing = sorted(name for name, kernel in all_kernels().items() if kernel not in ran)
    print("kernels that did not run:", *missing)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
