"""How many of some independent labels are positive: the Poisson binomial distribution."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from argmaxf._base.arrays import Floats

FEW = 5_000  # labels that are added one by one


class Count(NamedTuple):
    """How many of some labels are positive: the probabilities of `first`, `first` + 1, …"""

    first: int
    mass: Floats

    @classmethod
    def of(cls, p: Floats) -> Count:
        """Return the distribution: label by label, which keeps all digits, or of many at once."""
        from argmaxf.expected.counts import kernels

        if p.size <= FEW:
            return cls(*kernels.masses(p))
        first, mass = cls.at_once(p)
        return cls(first, mass / mass.sum())

    @classmethod
    def at_once(cls, p: Floats) -> Count:
        """Return it where its odds are above e^{-37}, from its characteristic function.

        O(60 n), and one FFT of the few values.
        """
        from argmaxf.expected import count_kernels

        mean, variance = float(p.sum()), float((p * (1.0 - p)).sum())
        stray = count_kernels.reach(variance)
        first, last = max(0, math.floor(mean - stray)), min(p.size, math.ceil(mean + stray))
        width = last - first + 1
        theta = 2.0 * math.pi * np.arange(width // 2 + 1) / width
        theta = theta[variance * (1.0 - np.cos(theta)) <= count_kernels.NATS + 4.0]
        real, imaginary = np.empty(theta.size), np.empty(theta.size)
        count_kernels.characteristic(p, theta, real, imaginary)
        wave = np.zeros(width // 2 + 1, np.complex128)
        wave[: theta.size] = (real - 1j * imaginary) * np.exp(1j * theta * first)
        return cls(first, np.maximum(np.fft.irfft(wave, width), 0.0))

    @property
    def values(self) -> Floats:
        """The counts."""
        return np.arange(self.first, self.first + self.mass.size, dtype=float)
