"""Kernels: functions of arrays that numba compiles where it is worth it.

`kernel` and `reordering_kernel` are the only two ways in which argmaxf compiles anything. Compiling
takes seconds on a fresh installation and loading numba half a second in every process, so the first
20,000 numbers of a process go through the Python functions: the same code, and but for the last
digit of a sum the same answer. Where numba is missing, everything runs as Python.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, update_wrapper
from types import FunctionType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy import ndarray
from numpy.typing import NDArray

from argmaxf._base import numba_cache

NUMBERS_IN_PYTHON = 20_000  # that a process takes before it compiles; under a second


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

    Compiled functions may call kernels, which are then part of their compilation. `py_func` is the
    Python function, `compiled` runs compiled code whatever the number of items.
    """

    dispatchers: ClassVar[dict[Kernel, Any]] = {}  # numba's functions, made when first needed
    lock: ClassVar[threading.RLock] = threading.RLock()

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.options = options
        self.compiled_for: set[Any] = set()  # kinds of arguments

    def __call__(self, *arguments: Any) -> Any:
        if _work.in_python:  # called by a kernel that runs in Python
            return self._as_python(arguments)
        if not self.compiled_for:
            numbers = _work.numbers + sum(a.size for a in _arrays(arguments))
            if numbers <= NUMBERS_IN_PYTHON:
                _work.numbers = numbers
                return self._in_python(arguments)
        return self.compiled(*arguments)

    def compiled(self, *arguments: Any) -> Any:
        """Run the function compiled, whatever the size of its input; as Python without numba."""
        # Nearly as fine as numba's types; what is finer is compiled without a notice.
        kinds = tuple([
            (a.dtype.num, a.ndim, a.flags.num) if type(a) is ndarray else type(a)
            for a in arguments
        ])  # fmt: skip
        if kinds not in self.compiled_for and not self._compile(arguments):
            return self._in_python(arguments)
        self.compiled_for.add(kinds)
        return (self.dispatchers.get(self) or self.dispatcher())(*arguments)

    def dispatcher(self) -> Any:
        """Return numba's function, which compiles itself for the types it is called with."""
        with self.lock:
            if self not in self.dispatchers:
                _let_numba_see_kernels()
                self.dispatchers[self] = numba_cache.cached_njit(self.py_func, self.options)
            return self.dispatchers[self]

    def _compile(self, arguments: tuple[Any, ...]) -> bool:
        """Compile for the types of these arguments, or read it from disk; False without numba.

        Whatever a cache can do wrong (a file cut short, a full disk), compiling without one cannot.
        """
        if not has_numba():
            return False
        import numba

        types = tuple(map(numba.typeof, arguments))
        with self.lock, _notice(), numba_cache.locked():
            try:
                self.dispatcher().compile(types)
            except Exception:
                if not numba_cache.give_up():
                    raise
                self.dispatchers.clear()
                self.dispatcher().compile(types)
        return True

    def _in_python(self, arguments: tuple[Any, ...]) -> Any:
        """Run the function as Python; where Python refuses what machines do, with NumPy's numbers.

        Python raises for 1.0 / 0.0, math.log(0.0) and math.exp(1e3), where compiled code has
        infinity. Such a call is done again with NumPy's arithmetic.
        """
        written = [a for a in _arrays(arguments) if a.flags.writeable]
        before = [a.copy() for a in written]
        _work.in_python = True
        try:
            with np.errstate(all="ignore"):
                try:
                    return self.py_func(*arguments)
                except (ArithmeticError, ValueError):
                    for array, content in zip(written, before, strict=True):
                        array[...] = content
                    _work.as_numpy = True
                    return self._as_python(arguments)
        finally:
            _work.in_python = _work.as_numpy = False

    def _as_python(self, arguments: tuple[Any, ...]) -> Any:
        """Run the function as Python, with NumPy's arithmetic where that was asked for."""
        if not _work.as_numpy:
            return self.py_func(*arguments)
        function: Any = self.py_func
        names = {**function.__globals__, "math": _NUMPY_AS_MATH}
        as_numpy = FunctionType(function.__code__, names, None, function.__defaults__)
        return as_numpy(*(np.float64(a) if isinstance(a, float) else a for a in arguments))


if hasattr(os, "register_at_fork"):  # a fork waits for the thread that compiles: numba has locks
    os.register_at_fork(
        before=Kernel.lock.acquire,
        after_in_parent=Kernel.lock.release,
        after_in_child=Kernel.lock.release,
    )


def _let_numba_see_kernels() -> None:
    """Tell numba that a kernel that another one calls is the function that numba made of it."""
    from numba.extending import typeof_impl

    if Kernel not in typeof_impl.registry:
        typeof_impl.register(Kernel)(
            lambda kernel, context: typeof_impl(kernel.dispatcher(), context)
        )


# The functions of `math` that kernels call, without exceptions for infinite results.
_FUNCTIONS = ("exp", "expm1", "log", "log1p", "log2", "sqrt")
_NUMPY_AS_MATH = SimpleNamespace(**vars(math) | {name: getattr(np, name) for name in _FUNCTIONS})


@cache
def has_numba() -> bool:
    """Whether numba is there; if not, say once that large input will take long."""
    try:
        with Kernel.lock:
            import numba  # noqa: F401
    except ImportError:
        warnings.warn(
            "numba cannot be imported, so argmaxf runs as plain Python, some hundred times slower "
            "for large input; install it with: pip install numba",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True


_SILENT_FOR = 1.5  # seconds of compiling, or of waiting for a process that compiles


@contextmanager
def _notice() -> Iterator[None]:
    """Say once on stderr that argmaxf is compiling, as soon as a process has waited for a while."""
    started = time.monotonic()
    timer = threading.Timer(max(_SILENT_FOR - _work.waited, 0.05), _say_compiling)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        _work.waited += time.monotonic() - started


@cache
def _say_compiling() -> None:
    if sys.stderr is not None:
        print("argmaxf: compiling, once for this installation …", file=sys.stderr, flush=True)


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
    as_numpy = False
    numbers = 0
    waited = 0.0  # seconds


_work = _Work()
