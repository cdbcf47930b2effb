"""Probabilities as whole numbers in the same order, so that a window of them is a range of keys.

With t = p for p < 1/2 and t = 1 - p from 1/2 on (exact in floating point), the key is the bit
pattern of t below 1/2 and counts down from the key of 1 above: equal steps of keys are steps of
equal size relative to t, and what is no probability has a key outside of [0, ONE].
"""

from __future__ import annotations

import torch
from torch import Tensor

HALF = 1022 << 52  # the bit pattern of 1/2
ONE = 2 * HALF
# Keys of a type's numbers are multiples of 2^this: the bits that a double has beyond it.
FINEST = {torch.float64: 0, torch.float32: 29, torch.float16: 42, torch.bfloat16: 45}


def as_floats(name: str, given: Tensor) -> Tensor:
    """Return a floating-point tensor as one of these types: bfloat16 has all 8-bit numbers."""
    if given.is_meta:
        raise ValueError(f"{name} must hold numbers, got a tensor of the meta device")
    p = given.detach().as_subclass(Tensor).resolve_neg()  # plain numbers, as NumPy takes them
    if p.dtype in FINEST:
        return p
    try:
        return p.to(torch.bfloat16)
    except (RuntimeError, NotImplementedError):  # two numbers in a byte, say
        raise ValueError(f"{name} must hold numbers of 8 to 64 bits, got {p.dtype}") from None


def keys(p: Tensor) -> Tensor:
    """Return the key of each probability."""
    number = p.double() + 0.0  # no negative zero
    below = number < 0.5
    bits = torch.where(below, number, 1.0 - number).view(torch.int64)
    return torch.where(below, bits, ONE - bits)


def values(key: Tensor) -> Tensor:
    """Return the probability of each key, in double precision."""
    below = key < HALF
    t = torch.where(below, key, ONE - key).view(torch.float64)
    return torch.where(below, t, 1.0 - t)
