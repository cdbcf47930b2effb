r"""A ratio of counts at the nodes of the integral, for many rows at once.

For (c T + s0) / (k + b_in T + b_out R + s1), with 1/x = Σ ω e^{-ux} (see `expected/nodes.py`), the
top k have the value f_k = Σ_m e^{-u_m k} Φ_k(u_m),

    Φ = ω e^{-u s1} Q A,   Q = Π_{i in} (1 - p_i w_in) Π_{j out} (1 - p_j w_out),
    A = c Σ_{i in} π_i + s0,   w = 1 - x,   x = e^{-bu},   π = p x_in / (1 - p w_in).

All tensors are rows × items (× nodes), in double precision.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from argmaxf.expected import nodes as rule
from argmaxf.torch.constants import once

LEAST_X = float(np.exp(-120.0))  # below, a tilted term is lost


class NodeTilt(NamedTuple):
    """w = 1 - e^{-bu} and x = e^{-bu} at the nodes u of each row."""

    w: Tensor
    x: Tensor


class State(NamedTuple):
    """k, A and log Q above the first bin, all exact."""

    k: Tensor
    a: Tensor
    log_q: Tensor


class RowForm(NamedTuple):
    """A measure at the nodes of each row."""

    coefficients: Any  # c, b_in, b_out, s0, s1
    u: Tensor
    weight: Tensor
    inside: NodeTilt
    outside: NodeTilt
    steepest: float  # no node u is above this, in any row

    @classmethod
    def of(cls, coefficients: Any, low: Tensor, high: Tensor) -> RowForm:
        """Prepare the measure for denominators between low and high in each row."""
        _, b_in, b_out, _, _ = coefficients
        u, weight = reciprocal_nodes(low, high)
        return cls(coefficients, u, weight, tilt(u, b_in), tilt(u, b_out), float(u.amax()))

    @property
    def one_tilt(self) -> bool:
        """Whether labels inside and outside are tilted alike: Q never changes then (F_β)."""
        return bool(self.coefficients[1] == self.coefficients[2])

    @property
    def is_steep(self) -> bool:
        """Whether an item changes Q by more than products of several keep digits of.

        As certain ones do in Tversky's index with a weight of misses far from that of false alarms.
        """
        return bool(not self.one_tilt and max(self.coefficients[1:3]) > 1.0)

    @property
    def pull(self) -> Tensor:
        """w_out - w_in = x_in - x_out, the difference of whichever are small."""
        (w_in, x_in), (w_out, x_out) = self.inside, self.outside
        return torch.where(x_out < 0.5, x_in - x_out, w_out - w_in)

    def scale(self, log_q: Tensor) -> Tensor:
        """ω e^{-u s1} Q."""
        s1: float = self.coefficients[4]
        return self.weight[:, None] * (log_q - self.u[:, None] * s1).exp()

    def decay(self, k: Tensor) -> Tensor:
        """e^{-uk}."""
        return (-self.u[:, None] * k[:, :, None]).exp()


def plausible(mean_low: Tensor, mean_high: Tensor, n: Tensor | int) -> tuple[Tensor, Tensor]:
    """Return how few and how many positives there plausibly are (`nodes.plausible_positives`)."""
    fewest = (mean_low - 9.0 * mean_low.sqrt()).clamp(min=0.0)
    return fewest, (mean_high + 9.0 * mean_high.sqrt() + 20.0).clamp(max=n)


def tilt(u: Tensor, b: float) -> NodeTilt:
    """Return w = 1 - e^{-bu} and x = e^{-bu}."""
    return NodeTilt(-torch.expm1(-b * u), (-b * u).exp().clamp(min=LEAST_X))


def share(p: Tensor, tilt: NodeTilt) -> Tensor:
    """p / (1 - p w), which grows with p."""
    return p[:, :, None] / factor(p, tilt)


def factor(p: Tensor, tilt: NodeTilt) -> Tensor:
    """1 - p w, without cancellation."""
    p, w, x = p[:, :, None], tilt.w[:, None], tilt.x[:, None]
    return torch.where(p < 0.5, 1.0 - p * w, x + (1.0 - p) * w)


def reciprocal_nodes(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Return the nodes and weights of `expected.nodes.reciprocal_nodes` for each row.

    Rows that need fewer nodes than others get nodes of weight 0 at u = 0.
    """
    short = high <= rule.RATIO * low
    needed = ((rule.TAIL * high / low).log() - rule.FIRST) / (rule.STEP * rule.LANES)
    needed = rule.LANES * (needed + 1.0 / rule.LANES).ceil()
    size = int(torch.where(short, float(rule.SHORT.size), needed).max())

    few, many = _rules(size, low.device)
    rows = torch.where(short[:, None], few / low[:, None], many / high[:, None])
    beyond = torch.arange(size, device=low.device) >= torch.where(short, size, needed)[:, None]
    u, weight = rows.masked_fill(beyond, 0.0)
    return u, weight


@once
def _rules(size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Nodes and weights of both rules, 2 × 1 × size each."""
    few = np.zeros((2, 1, size))
    few[:, 0, : rule.SHORT.size] = rule.SHORT, rule.SHORT_WEIGHT
    many = np.stack([rule.SHAPE[:size], rule.SHAPE_WEIGHT[:size]])[:, None]
    return torch.from_numpy(few).to(device), torch.from_numpy(many).to(device)


def log_ratio(form: RowForm, p: Tensor) -> Tensor:
    """log (1 - p w_in) / (1 - p w_out), which is monotone in p."""
    less_one = form.pull[:, None] * share(p, form.outside)
    far = (factor(p, form.inside) / factor(p, form.outside)).log()
    return torch.where(less_one.abs() < 0.5, torch.log1p(less_one.clamp(min=-0.5)), far)
