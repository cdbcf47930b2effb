"""`cached_property` as Python 3.12 has it: that of 3.11 locks all instances while it computes one.

A process that is forked while another thread computes would wait for that lock forever.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    cached_property = functools.cached_property
else:

    class cached_property(functools.cached_property):
        """A value that an instance computes once."""

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            """Return the value; a non-data descriptor is not asked again."""
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value
