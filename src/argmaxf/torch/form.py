r"""A ratio of counts at the nodes of the integral, for many rows at once.

For (c T + s0) / (k + b_in T + b_out R + s1), with 1/x = Σ ω e^{-ux} (`expected/quadrature.py`), the
top k have the value f_k = Σ_m e^{-u_m k} Φ_k(u_m),

    Φ = ω e^{-u s1} Q A,   Q = Π_{i in} (1 - p_i w_in) Π_{j out} (1 - p_j w_out),
    A = c Σ_{i in} π_i + s0,   w = 1 - x,   x = e^{-bu},   π = p x_in / (1 - p w_in).

Tensors are rows × items (× nodes), in double precision. What there is of each row at its nodes is
chosen and put together on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from argmaxf._base.arrays import Floats
from argmaxf.expected.quadrature import reciprocal_nodes
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.measures import Coefficients
from argmaxf.torch import host_kernels

WORK = 1 << 10  # a row costs about as much as so many items in a pass over an array


class NodeTilt(NamedTuple):
    """w = 1 - e^{-bu} and x = e^{-bu} at the nodes u of each row."""

    w: Tensor
    x: Tensor


class RowForm(NamedTuple):
    """A measure at the nodes of each row."""

    coefficients: Coefficients
    ratio: tuple[float, ...]  # the same, as compiled loops take them
    nodes: Floats  # u, ω, and w and x inside and outside, on the host
    u: Tensor
    weight: Tensor
    inside: NodeTilt
    outside: NodeTilt

    @classmethod
    def of(
        cls, coefficients: Coefficients, low: Floats, high: Floats, device: torch.device
    ) -> RowForm:
        """Prepare the measure for denominators between low and high in each row."""
        widest = int(np.argmax(high / low))
        most = reciprocal_nodes(float(low[widest]), float(high[widest])).u.size
        nodes = np.zeros((6, low.size, most))
        ratio = tuple(map(float, coefficients))
        by_rows(host_kernels.fill_nodes, low.size, low, high, ratio, out=nodes)
        u, weight, *tilts = torch.from_numpy(nodes).to(device).unbind()
        inside = NodeTilt(*tilts[:2])
        one_tilt = coefficients.b_in == coefficients.b_out
        outside = inside if one_tilt else NodeTilt(*tilts[2:])
        return cls(Coefficients(*ratio), ratio, nodes, u, weight, inside, outside)

    @classmethod
    def for_sets(
        cls,
        coefficients: Coefficients,
        mean: Floats,
        n: int,
        first: Floats,
        last: Floats | int,
        device: torch.device,
    ) -> RowForm:
        """Prepare the measure for sets of `first` to `last` of the n pixels of each row."""
        fewest, most = plausible(mean, n)
        _, b_in, b_out, _, s1 = coefficients
        high = last + 1.0 + s1 + max(b_in, b_out) * most
        return cls.of(coefficients, least_denominator(coefficients, fewest, first), high, device)

    @property
    def one_tilt(self) -> bool:
        """Whether labels inside and outside are tilted alike: Q never changes then (F_β)."""
        return self.outside is self.inside

    @property
    def grows(self) -> bool:
        """Whether Q grows, or stays, with every pixel that is taken in."""
        return bool(self.coefficients.b_out >= self.coefficients.b_in)

    @property
    def pull(self) -> Tensor:
        """w_out - w_in = x_in - x_out, the difference of whichever are small."""
        (w_in, x_in), (w_out, x_out) = self.inside, self.outside
        return torch.where(x_out < 0.5, x_in - x_out, w_out - w_in)


def by_rows(work: Callable[..., None], rows: int, *given: Any, out: Floats) -> Floats:
    """Let a compiled loop fill in something for every row, by several threads where it is long."""

    def part(some: slice) -> None:
        work(*given, some.start, some.stop, out)

    in_threads(part, rows, threads_for(WORK * rows))
    return out


def plausible(mean: Floats, n: float) -> tuple[Floats, Floats]:
    """Return how few and how many positives there plausibly are (`expected/quadrature.py`)."""
    spread = 9.0 * np.sqrt(mean)
    return np.maximum(mean - spread, 0.0), np.minimum(mean + spread + 20.0, n)


def least_denominator(coefficients: Coefficients, fewest: Floats, k: Floats | float) -> Floats:
    """Return what k + b_in T + b_out R + s1 is at least, also since k ≥ T."""
    _, b_in, b_out, _, s1 = coefficients
    by_size, by_positives = min(b_in, b_out) * fewest, min(1.0 + b_in, b_out) * fewest
    least: Floats = s1 + np.maximum(k + by_size, by_positives)
    return least


def factor(p: Tensor, tilt: NodeTilt) -> Tensor:
    """1 - p w, without cancellation."""
    p = p[:, :, None]
    return torch.addcmul(1.0 - p, p, tilt.x[:, None])


def share(p: Tensor, tilt: NodeTilt) -> Tensor:
    """p / (1 - p w), which grows with p."""
    return p[:, :, None] / factor(p, tilt)


def log_ratio(form: RowForm, p: Tensor) -> Tensor:
    """log (1 - p w_in) / (1 - p w_out)."""
    less_one = form.pull[:, None] * share(p, form.outside)
    far = (factor(p, form.inside) / factor(p, form.outside)).log()
    return torch.where(less_one.abs() < 0.5, torch.log1p(less_one.clamp(min=-0.5)), far)
