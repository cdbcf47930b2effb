"""Where a cell's time goes: model fitting, soft-F training, deciding."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

PARTS = ("fit", "soft F", "decide")

_spent: defaultdict[str, float] = defaultdict(float)


@contextmanager
def timed(part: str) -> Iterator[None]:
    """Count the time spent inside towards one part."""
    start = time.perf_counter()
    try:
        yield
    finally:
        _spent[part] += time.perf_counter() - start


def restart() -> None:
    """Forget what was counted."""
    _spent.clear()


def seconds() -> dict[str, float]:
    """Return the seconds counted since the last restart."""
    return {part: _spent[part] for part in PARTS}
