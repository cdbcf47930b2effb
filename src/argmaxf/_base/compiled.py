"""Kernels: functions of arrays that run compiled where it is worth it, and as they stand where not.

`kernel` and `reordering_kernel` are the only two ways that argmaxf compiles anything. Compiling
takes seconds on a fresh installation and loading numba half a second in every process, so the first
few thousand numbers of a process go through the Python functions: the same code, and but for the
last digit of a sum the same answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import cached_property, update_wrapper
from typing import Any

import numpy as np
from numpy.typing import NDArray

ENOUGH = 20_000  # numbers that a process takes through Python before it compiles; under a second

PATIENCE = 30  # calls that go another way before a process compiles what takes seconds


def kernel(function: Callable[..., Any]) -> Kernel:
    """Compile a function of arrays; it releases the interpreter lock while it runs.

    Division by zero gives infinity as in NumPy: a check for it would keep loops from vectorizing.
    """
    return Kernel(function)


def reordering_kernel(function: Callable[..., Any]) -> Kernel:
    """Compile a function whose sums may be reordered, so that they vectorize."""
    return Kernel(function, fastmath={"reassoc", "contract"})


class Kernel:
    """A function that decides at each call whether to run compiled; once compiled it always does.

    Compiled functions may call kernels, which are then part of their compilation.
    """

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.ready = False  # known to be worth calling (`is_ready`)
        self.passed_over = 0
        self.options = options

    @cached_property
    def compiled(self) -> Any:
        """The function compiled by numba: at its first call, or read from disk."""
        from argmaxf._base.numba_cache import compile_kept

        return compile_kept(self.py_func, **self.options)

    @property
    def _numba_type_(self) -> Any:
        """How numba sees a kernel that another one calls."""
        return self.compiled._numba_type_

    def is_ready(self, *arguments: Any) -> bool:
        """Whether a call need not wait for the compiler; passed over often enough, it may.

        For kernels whose work can be done in another way that takes less to compile.
        """
        if self.ready or _work.could_afford(arguments):
            return True
        from argmaxf._base.numba_cache import is_kept

        self.passed_over += 1
        self.ready = self.passed_over > PATIENCE or is_kept(self.compiled, arguments)
        return self.ready

    def __call__(self, *arguments: Any) -> Any:
        """Run the function, compiled or not."""
        if _work.in_python:  # called by a kernel that runs in Python
            return self.py_func(*arguments)
        if "compiled" not in self.__dict__ and _work.affords(arguments):
            return self._in_python(arguments)
        return self.compiled(*arguments)

    def _in_python(self, arguments: tuple[Any, ...]) -> Any:
        """Run the function as it stands; where Python refuses what machines do, compile it."""
        written = [a for a in _arrays(arguments) if a.flags.writeable]
        before = [a.copy() for a in written]
        _work.in_python = True
        try:
            with np.errstate(all="ignore"):
                return self.py_func(*arguments)
        except (ArithmeticError, ValueError):  # 1.0 / 0.0, math.log(0.0), math.exp(1e3)
            for array, content in zip(written, before, strict=True):
                array[...] = content
        finally:
            _work.in_python = False
        return self.compiled(*arguments)


def _arrays(arguments: tuple[Any, ...]) -> Iterator[NDArray[Any]]:
    """Yield the arrays among the arguments, those inside of records too."""
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            yield argument
        elif isinstance(argument, tuple):
            yield from _arrays(argument)


class _Work(threading.local):
    """What this thread takes through Python: how many numbers, and whether it is at it."""

    in_python = False
    numbers = 0

    def could_afford(self, arguments: tuple[Any, ...]) -> bool:
        return self.numbers + sum(a.size for a in _arrays(arguments)) <= ENOUGH

    def affords(self, arguments: tuple[Any, ...]) -> bool:
        if not self.could_afford(arguments):
            return False
        self.numbers += sum(a.size for a in _arrays(arguments))
        return True


_work = _Work()
