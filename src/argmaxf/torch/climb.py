"""Bounds on f along the bins of tables, in plain torch, for many rows at once.

A row of a table has bins by falling p. At their borders A and Q (see `form`) are known between
bounds, exactly where the bins are single values; inside of them the bounds of `expected/search.py`
tell whether f is too poor, only falls, or only rises. `triton_climb` has the same for NVIDIA GPUs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from argmaxf.torch.form import RowForm, State, log_ratio, share
from argmaxf.torch.keys import values
from argmaxf.torch.passes import BinTable

SLACK = 1e-12  # bounds must hold by more than this, relative to their terms


class BinLadder(NamedTuple):
    """What is known along the bins of a table."""

    k: Tensor  # at the borders, bins + 1
    f: Tensor  # at the borders, from below; where it is exact, less that at the first one
    base: Tensor  # f at the first border
    ceiling: Tensor  # f inside each bin, from above
    falls: Tensor
    rises: Tensor


class Bins(NamedTuple):
    """A table with probabilities instead of keys."""

    size: Tensor
    low: Tensor
    high: Tensor


def bins_of(table: BinTable) -> Bins:
    """Return how many items each bin has, and between which probabilities they are."""
    return Bins(table.size.double(), values(table.low), values(table.high))


def climb(
    form: RowForm, table: BinTable, start: State, *, exact: bool, single: bool = False
) -> BinLadder:
    """Bound f at the borders of all bins, and inside of them; `single` items have no inside."""
    bins = bins_of(table)
    c = form.coefficients[0]
    count, x = bins.size[:, :, None], form.inside.x[:, None]
    share_low = share(bins.low, form.inside)
    share_high = share_low if exact else share(bins.high, form.inside)
    k = _borders(start.k[:, None], bins.size[:, :, None])[..., 0]
    a_low = _borders(start.a, c * x * count * share_low)
    a_high = a_low if exact else _borders(start.a, c * x * count * share_high)
    q_low, q_high = _log_q(form, bins, start, exact)
    q = form.scale(q_low), form.scale(q_high)
    decay = form.decay(k)
    before, after = decay[:, :-1], decay[:, 1:]
    lowest, highest = _between(form, q, a_low, a_high)
    least, most = _steps(form, bins, q, (a_low, a_high), (share_low, share_high))
    e, loss = (-form.u[:, None]).exp(), -torch.expm1(-form.u[:, None])
    late = form.decay((k[:, 1:] - 1.0).clamp(min=0.0))
    down = (late * loss * lowest).sum(2) - (after * most.clamp(max=0.0)).sum(2)
    falls = (before * e * most.clamp(min=0.0)).sum(2) < (1.0 - SLACK) * down
    down = (before * loss * highest).sum(2) - (before * e * least.clamp(max=0.0)).sum(2)
    rises = (after * least.clamp(min=0.0)).sum(2) > (1.0 + SLACK) * down
    f = (decay * q[0] * a_low).sum(2)
    base = f[:, 0]
    if exact:
        f = _by_differences(form, bins, decay, q[0], a_low, c * x * count * share_low)
    return BinLadder(k, f, base, (before * e * highest).sum(2), falls, rises)


def state_at(form: RowForm, table: BinTable, start: State, border: Tensor) -> State:
    """Return the state at one border of each row, of bins that are single values."""
    bins = bins_of(table)
    above = torch.arange(bins.size.shape[1], device=border.device) < border[:, None]
    size = torch.where(above, bins.size, 0.0)
    count = size[:, :, None]
    a = start.a + (
        form.coefficients[0] * form.inside.x[:, None] * count * share(bins.low, form.inside)
    ).sum(1)
    log_q = start.log_q
    if not form.one_tilt:
        log_q = log_q + (count * log_ratio(form, bins.low)).sum(1)
    return State(start.k + size.sum(1), a, log_q)


def _borders(start: Tensor, steps: Tensor) -> Tensor:
    """Add up the bins' parts, from the value above the first one."""
    start = start[:, None]
    return torch.cat([start, start + steps.cumsum(1)], 1)


def _log_q(form: RowForm, bins: Bins, start: State, exact: bool) -> tuple[Tensor, Tensor]:
    """Bound log Q at the borders; it has only one value where Q does not change."""
    if form.one_tilt:
        return start.log_q[:, None], start.log_q[:, None]
    low = bins.size[:, :, None] * log_ratio(form, bins.low)
    if exact:
        q = _borders(start.log_q, low).clamp(max=0.0)  # Q is a product of probabilities
        return q, q
    high = bins.size[:, :, None] * log_ratio(form, bins.high)
    ends = torch.minimum(low, high), torch.maximum(low, high)
    low, high = _borders(start.log_q, ends[0]), _borders(start.log_q, ends[1])
    return low.clamp(max=0.0), high.clamp(max=0.0)


def _ends(q: Tensor) -> tuple[Tensor, Tensor]:
    """The values at each bin's first and last border."""
    return (q, q) if q.shape[1] == 1 else (q[:, :-1], q[:, 1:])


def _between(form: RowForm, q: tuple[Tensor, Tensor], a_low: Tensor, a_high: Tensor) -> Any:
    """Bound Φ inside each bin: A grows with k, Q too if b_out ≥ b_in, else it falls."""
    _, b_in, b_out, _, _ = form.coefficients
    (low_a, low_b), (high_a, high_b) = _ends(q[0]), _ends(q[1])
    q_least, q_most = (low_a, high_b) if b_out >= b_in else (low_b, high_a)
    return q_least * a_low[:, :-1], q_most * a_high[:, 1:]


def _steps(form: RowForm, bins: Bins, q: Any, a: Any, shares: Any) -> tuple[Tensor, Tensor]:
    """Bound Φ_k - Φ_{k-1} inside each bin from below and above (see `expected/form.py`)."""
    c, b_in, b_out, _, _ = form.coefficients
    x = form.inside.x[:, None]
    if form.one_tilt:
        return q[0] * c * x * shares[0], q[1] * c * x * shares[1]
    (low_a, low_b), (high_a, high_b) = _ends(q[0]), _ends(q[1])
    pull = form.pull[:, None]
    ends = c * x + pull * a[0][:, :-1], c * x + pull * a[1][:, 1:]
    least, most = torch.minimum(*ends), torch.maximum(*ends)
    share_low, share_high = share(bins.low, form.outside), share(bins.high, form.outside)
    if b_out > b_in:  # Q_{k-1} / (1 - p w_out) = Q_k / (1 - p w_in)
        low, high = low_a * share_low, high_b * shares[1]
    else:
        low, high = low_b * share_low, high_a * share_high
    return (
        torch.where(least > 0.0, low, high) * least,
        torch.where(most > 0.0, high, low) * most,
    )


def _by_differences(
    form: RowForm, bins: Bins, decay: Tensor, q: Tensor, a: Tensor, gain: Tensor
) -> Tensor:
    """f at the borders less that at the first one, as sums of exact differences.

    So neighbouring k are told apart, even if they differ by less than the last digit of f.

    f_{i+1} - f_i = Σ e^{-u k_i} ω Q_i [A_i (e^y - 1) + e^y (A_{i+1} - A_i)], where
    y = log Q_{i+1} / Q_i - u N.
    """
    y = -form.u[:, None]
    if not form.one_tilt:
        y = y + log_ratio(form, bins.low)
    y = bins.size[:, :, None] * y
    steps = (decay[:, :-1] * _ends(q)[0] * (a[:, :-1] * torch.expm1(y) + y.exp() * gain)).sum(2)
    return torch.nn.functional.pad(steps.cumsum(1), (1, 0))
