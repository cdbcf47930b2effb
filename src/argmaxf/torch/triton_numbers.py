"""Numbers in Triton kernels: keys and probabilities, logarithms that lose nothing, constants."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from argmaxf.torch.constants import once

ONE = tl.constexpr(2044 << 52)
HALF = tl.constexpr(1022 << 52)


def ceil_div(number: int, by: int) -> int:
    """⌈number / by⌉: triton.cdiv takes as long as a small operation on the device."""
    return -(-number // by)


def block_of(size: int) -> int:
    """Return the power of two from which on a block has room for so many numbers."""
    return 1 << (size - 1).bit_length()


@once
def numbers_on(numbers: tuple[float, ...], device: torch.device) -> Tensor:
    """Numbers of full precision: as arguments they would be single."""
    return torch.tensor([float(each) for each in numbers], dtype=torch.float64, device=device)


@triton.jit
def key_of(p):
    """The key of a probability (see `keys`)."""
    number = p.to(tl.float64) + 0.0
    below = number < 0.5
    bits = tl.where(below, number, 1.0 - number).to(tl.int64, bitcast=True)
    return tl.where(below, bits, ONE - bits)


@triton.jit
def number_of(key):
    """The probability of a key: a key from -1 to ONE + 2 has a value below, in or above [0, 1]."""
    below = key < HALF
    t = tl.where(below, tl.maximum(key, 0), ONE - key).to(tl.float64, bitcast=True)
    number = tl.where(below, t, 1.0 - tl.where(key > ONE, -1.0, t))
    return tl.where(key < 0, -1.0, number)


@triton.jit
def log_of(factor_less_one):
    """log(1 + e) to full relative precision; a product that rounding took to 0 stays above it."""
    u = tl.maximum(1.0 + factor_less_one, 1e-30)
    exact = tl.where(u == 1.0, 1.0, u - 1.0)
    return tl.where(u == 1.0, factor_less_one, tl.log(u) * (factor_less_one / exact))


@triton.jit
def expm1(y):
    """e^y - 1 for y ≤ 0 to full relative precision."""
    e = tl.exp(y)
    log_e = tl.log(tl.maximum(e, 1e-30))
    corrected = (e - 1.0) * (y / tl.where(log_e == 0.0, 1.0, log_e))
    return tl.where(e == 1.0, y, tl.where(e < 1e-5, e - 1.0, corrected))


@triton.jit
def factor_of(p, w, x):
    """1 - p w."""
    return tl.where(p < 0.5, 1.0 - p * w, x + (1.0 - p) * w)


@triton.jit
def share_of(p, w, x):
    """p / (1 - p w)."""
    return p / factor_of(p, w, x)


@triton.jit
def pull_of(wi, xi, wo, xo):
    """w_out - w_in (`form.RowForm.pull`)."""
    return tl.where(xo < 0.5, xi - xo, wo - wi)


@triton.jit
def log_ratio(p, wi, xi, wo, xo, GROWS: tl.constexpr):
    """log (1 - p w_in) / (1 - p w_out) (`form.log_ratio`); GROWS: it is not below 0."""
    less_one = pull_of(wi, xi, wo, xo) * share_of(p, wo, xo)
    ratio = log_of(tl.maximum(less_one, -0.5))
    if not GROWS:
        far = tl.log(factor_of(p, wi, xi) / factor_of(p, wo, xo))
        ratio = tl.where(less_one > -0.5, ratio, far)
    return ratio
