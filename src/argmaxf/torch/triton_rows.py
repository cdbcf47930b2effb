r"""Rows of pixels decided on an NVIDIA GPU: the band of `expected/band.py` as Triton kernels.

The mathematics, and the names, are those of `band.py` and `node_kernels.py`. Every step takes all
rows at once, and the numbers of a row stay on the device; what is printed below in order is
launched without a wait of the host, who reads a status for each row at the end:

    count, guess           counts of a sample in bins; where hundreds are positive a first threshold
    above, narrow (twice)  sums above the threshold; a better one, and a narrow band around it
    count, wide            counts of all pixels of the other rows; a wide band
    around, gather         sums around the band; its pixels are copied, and sorted by torch
    decide                 every set that ends in the band, the proof, mean and spread of the best
    mark                   the mask

Short rows have wide bands; one launch prepares them (`_short`).

Each program of the first grid axis has a row, of the second a part of it. Counts are whole numbers,
the pixels of a band are sorted, and sums of parts are added in a fixed order, so that two runs
agree bit for bit.
"""

from __future__ import annotations

import threading
from functools import lru_cache

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from argmaxf._base.arrays import Floats
from argmaxf.expected import band, pass_kernels, quadrature
from argmaxf.problem import Problem

CAPACITY, WHOLE = 4096, 256  # pixels of a band, at most; of a row that is all band
AT_ONCE = 1 << 22  # pixels of the bands of rows that are decided together
SAMPLED = 1 << 13  # pixels of a row that are counted first, or one in 64
PART, PARTS = 8192, 1024  # pixels of a program at least; programs of a row at most
MOST_NODES = 128
MOST_PLANS = 16  # shapes that are remembered
KINDS = {
    torch.float64: tl.float64,
    torch.float32: tl.float32,
    torch.float16: tl.float16,
    torch.bfloat16: tl.bfloat16,
}
# Constants of the kernels; the interpreter wants tensors to stand before them
LANES = tl.constexpr(1024)  # pixels read at a time
MANY, FEW, RUN = map(tl.constexpr, (4096, 256, 256))  # counted, summed; neighbours of a sample
ITEMS, NODES, PARTS_AT_ONCE = map(tl.constexpr, (64, 32, 64))  # looked at together
STATE, PARTIAL, RESULT = map(tl.constexpr, (8, 32, 6))  # numbers of a row, of a part; the result
BINS, ONE = tl.constexpr(pass_kernels.BINS), tl.constexpr(pass_kernels.ONE)
FLAT, STEEPEST = tl.constexpr(band.FLAT), tl.constexpr(band.STEEPEST)
SHORT, TABLE = tl.constexpr(len(quadrature.SHORT_NODES)), tl.constexpr(MOST_NODES)
RATIO, TAIL = tl.constexpr(quadrature.RATIO), tl.constexpr(quadrature.TAIL)
FIRST, STEP = tl.constexpr(quadrature.FIRST), tl.constexpr(quadrature.STEP)
VECTOR_LANES = tl.constexpr(quadrature.VECTOR_LANES)


@lru_cache(maxsize=8)
def _rules(device: torch.device) -> Tensor:
    """Return both quadrature rules, nodes before weights; the short one comes first."""
    long_rule = quadrature.SHAPE[:MOST_NODES], quadrature.SHAPE_WEIGHT[:MOST_NODES]
    rules = np.concatenate([quadrature.SHORT_NODES, quadrature.SHORT_WEIGHT, *long_rule])
    return torch.from_numpy(rules).to(device)


def decide(p: Tensor, problem: Problem) -> tuple[Tensor, Tensor, Floats]:
    """Return masks, and of each row: status, k, threshold, mean, spread, and equal pixels too many.

    These are on the device and on the host. The status is 1 if the row is decided, 0 if not, and
    negative where a value is no probability.
    """
    given = *map(float, problem.coefficients), problem.zero_division, float(problem.split_ties)
    masks = torch.empty(p.shape, dtype=torch.bool, device=p.device)
    with torch.cuda.device_of(p), LOCK:
        stream = torch.cuda.current_stream().cuda_stream if p.is_cuda else 0
        return masks, *plan_for(p.device, stream, p.dtype, p.shape, given).run(p, masks)


class Plan:
    """All launches for tensors of one shape, recorded (a CUDA graph) the second time they are run.

    The kernels read the addresses of pixels and masks from memory, so that no tensor is copied.
    """

    def __init__(
        self,
        device: torch.device,
        stream: int,
        dtype: torch.dtype,
        shape: torch.Size,
        given: tuple[float, ...],
    ) -> None:
        on_gpu, (self.rows, self.n) = device.type == "cuda", shape
        self.p_type = KINDS[dtype]
        self.rule = torch.tensor(given, dtype=torch.float64, device=device)
        self.result = torch.empty(self.rows, RESULT.value, dtype=torch.float64, device=device)
        self.where = torch.empty(2, dtype=torch.int64, device=device)
        self.where_host = torch.empty(2, dtype=torch.int64, pin_memory=on_gpu)
        self.host = torch.empty(self.rows, RESULT.value, dtype=torch.float64, pin_memory=on_gpu)
        self.graph, self.runs = torch.cuda.CUDAGraph() if on_gpu else None, 0

    def run(self, p: Tensor, masks: Tensor) -> tuple[Tensor, Floats]:
        """Decide the rows of a tensor of this shape, and wait for the result."""
        self.where_host.numpy()[:] = p.data_ptr(), masks.data_ptr()
        self.runs += 1
        if self.graph is None or self.runs == 1:
            self.launch()
        else:
            if self.runs == 2:
                with torch.cuda.stream(torch.cuda.Stream()):
                    self.graph.capture_begin(capture_error_mode="thread_local")
                    self.launch()
                    self.graph.capture_end()
            self.graph.replay()
        result = self.result.clone()
        if self.graph is not None:
            torch.cuda.current_stream().synchronize()
        return result, self.host.numpy().copy()

    def launch(self) -> None:
        """Launch everything."""
        self.where.copy_(self.where_host, non_blocking=True)
        n = self.n
        capacity = max(32, 1 << (n - 1).bit_length()) if n <= WHOLE else CAPACITY
        step = max(1, AT_ONCE // capacity)
        for first in range(0, self.rows, step):
            self.launch_rows(first, min(step, self.rows - first), capacity)
        part, parts = _parts_of(n)
        _mark[self.rows, parts](self.where, 0, n, self.p_type, part, self.result)
        self.host.copy_(self.result, non_blocking=True)

    def launch_rows(self, first: int, rows: int, capacity: int) -> None:
        """Decide some rows; `capacity` is how many pixels a band may have."""
        n, rule, device, whole = self.n, self.rule, self.where.device, self.n <= WHOLE
        part, parts = _parts_of(n)
        grid, pixels = (rows, parts), (self.where, first, n, self.p_type)
        most_nodes = MOST_NODES // 2 if whole else MOST_NODES

        def room(*shape: int) -> Tensor:
            return torch.empty(shape, dtype=torch.float64, device=device)

        state, partial = room(rows, STATE.value), room(rows, parts, PARTIAL.value)
        zeros = torch.zeros(rows, capacity + 1, dtype=torch.float64, device=device).view(-1)
        found = zeros[: rows * capacity].view(rows, capacity)
        filled = zeros[rows * capacity :].view(torch.int64)
        counts = torch.zeros(rows, 0 if whole else BINS.value, dtype=torch.int64, device=device)
        if parts == 1:
            room_of_band = partial, found, filled, capacity
            _short[(rows,)](*pixels, rule, state, counts, *room_of_band, whole)
        else:
            every = max(1, min(64, n // SAMPLED))
            sampled, run = torch.zeros_like(counts), RUN.value * every
            in_sample = -(-n // run) * RUN.value
            by_part = rows, -(-in_sample // MANY.value)
            _count[by_part](*pixels, in_sample, MANY.value, every, state, sampled, True)
            _guess[(rows,)](sampled, every, rule, state)
            for _ in range(2):
                _above[grid](*pixels, part, state, partial)
                _narrow[(rows,)](partial, n, parts, rule, state)
            _count[grid](*pixels, n, part, 1, state, counts, False)
            _wide[(rows,)](counts, n, rule, state)
            _around[grid](*pixels, part, state, partial)
            _gather[grid](*pixels, part, state, found, filled, capacity, MANY.value)
        found = found.sort(1, descending=True).values
        work, result = room(rows, 2 * capacity + 6 * most_nodes), self.result[first : first + rows]
        given = found, work, partial, n, parts, filled, rule, _rules(device), state, result
        if whole:
            _decide[(rows,)](*given, capacity, most_nodes, 1, 32, num_warps=2)
        else:
            sums, items = pass_kernels.SUMS, ITEMS.value
            _decide[(rows,)](*given, capacity, most_nodes, sums, items, num_warps=8)


def _parts_of(n: int) -> tuple[int, int]:
    """How many pixels of a row a program reads, and how many programs there are."""
    lanes = LANES.value
    part = max(PART, -(-n // (PARTS * lanes)) * lanes)
    return part, -(-n // part)


plan_for = lru_cache(maxsize=MOST_PLANS)(Plan)
LOCK = threading.Lock()


def node_sums(p: Tensor, w: Tensor, x: Tensor) -> Tensor:
    """Σ log(1 - p w), Σ π, Σ (1 - π) and Σ π (1 - π) over the pixels of each row, at its nodes.

    Rows × 4 × nodes. Negative pixels do not count.
    """
    (rows, n), nodes = p.shape, w.shape[1]
    part = max(PART, -(-n // (64 * LANES.value)) * LANES.value)
    out = torch.empty(rows, -(-n // part), 4, nodes, dtype=torch.float64, device=p.device)
    given = w.contiguous(), x.contiguous()
    with torch.cuda.device_of(p):
        _node_sums[rows, out.shape[1]](p, n, part, *given, out, nodes)
    return out.sum(1)


def reciprocals(p: Tensor, scale: Tensor, x: Tensor) -> Tensor:
    """Σ_m scale_m / (1 - p w_m) for each pixel of each row, x = 1 - w."""
    (rows, n), given = p.shape, [each.contiguous() for each in (p, scale, x)]
    out = torch.empty(rows, n, dtype=torch.float64, device=p.device)
    with torch.cuda.device_of(p):
        _reciprocals[rows, -(-n // LANES.value)](*given, out, n, x.shape[1])
    return out


def excess(p: Tensor, scale: Tensor, x: Tensor, price: Tensor, nu: Tensor) -> Tensor:
    """Σ_i max(0, Σ_m scale_m p_i / (1 - p_i w_m) - price_i - ν) over the pixels of each class.

    `scale` is classes × ends × nodes, there is one ν more than ends, and the result is classes ×
    ends × 2: with the ν before and after each.
    """
    (rows, n), ends = p.shape, scale.shape[1]
    out = torch.empty(rows, -(-n // LANES.value), ends, 2, dtype=torch.float64, device=p.device)
    given = [each.contiguous() for each in (p, scale, x, price, nu)]
    with torch.cuda.device_of(p):
        _excess[rows, out.shape[1]](*given, out, n, ends, x.shape[1])
    return out.sum(1)


@triton.jit(do_not_specialize=["n", "part", "nodes"])
def _node_sums(p, n, part, w, x, out, nodes):
    row, lane = tl.program_id(0).to(tl.int64), tl.arange(0, NODES)
    start = tl.program_id(1).to(tl.int64) * part
    stop = tl.minimum(start + part, n)
    out += (row * tl.num_programs(1) + tl.program_id(1)) * 4 * nodes
    for m in range(0, nodes, NODES):
        there = m + lane < nodes
        w_m = tl.load(w + row * nodes + m + lane, mask=there, other=0.0)
        x_m = tl.load(x + row * nodes + m + lane, mask=there, other=1.0)
        log, pi, rest, variance = _of_items(p + row * n, start, stop, w_m, x_m, ITEMS)
        tl.store(out + m + lane, log, mask=there)
        tl.store(out + nodes + m + lane, pi, mask=there)
        tl.store(out + 2 * nodes + m + lane, rest, mask=there)
        tl.store(out + 3 * nodes + m + lane, variance, mask=there)


@triton.jit
def _of_pixels(d, scale, x, nodes):
    """Σ_m scale_m / (1 - p w_m) of some pixels."""
    total = d * 0.0
    for m in range(nodes):
        total += tl.load(scale + m) / (1.0 - d + d * tl.load(x + m))
    return total


@triton.jit(do_not_specialize=["n", "nodes"])
def _reciprocals(p, scale, x, out, n, nodes):
    row = tl.program_id(0).to(tl.int64)
    place = tl.program_id(1).to(tl.int64) * LANES + tl.arange(0, LANES)
    d = tl.load(p + row * n + place, mask=place < n, other=0.0).to(tl.float64)
    total = _of_pixels(d, scale + row * nodes, x + row * nodes, nodes)
    tl.store(out + row * n + place, total, mask=place < n)


@triton.jit(do_not_specialize=["n", "ends", "nodes"])
def _excess(p, scale, x, price, nu, out, n, ends, nodes):
    row = tl.program_id(0).to(tl.int64)
    place = tl.program_id(1).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = place < n
    d = tl.load(p + row * n + place, mask=there, other=0.0).to(tl.float64)
    paid = tl.load(price + place, mask=there, other=float("inf"))
    out += (row * tl.num_programs(1) + tl.program_id(1)) * ends * 2
    for e in range(ends):
        at = scale + (row * ends + e) * nodes
        worth = d * _of_pixels(d, at, x + row * nodes, nodes) - paid
        before = tl.load(nu + row * (ends + 1) + e)
        after = tl.load(nu + row * (ends + 1) + e + 1)
        tl.store(out + e * 2, tl.sum(tl.maximum(worth - before, 0.0)))
        tl.store(out + e * 2 + 1, tl.sum(tl.maximum(worth - after, 0.0)))


@triton.jit
def _pixels(where, first, n, KIND: tl.constexpr):
    """The pixels of a row: the address of all of them is in memory."""
    row = tl.program_id(0).to(tl.int64)
    return row, tl.load(where).to(tl.pointer_type(KIND)) + (first + row) * n


@triton.jit(do_not_specialize=["first", "n", "size", "part", "every"])
def _count(
    where, first, n, KIND: tl.constexpr, size, part, every, state, counts, IS_SAMPLE: tl.constexpr
):  # fmt: skip
    """Count pixels in bins, one run of neighbours in so many."""
    row, p = _pixels(where, first, n, KIND)
    start = tl.program_id(1).to(tl.int64) * part
    stop = tl.minimum(part, size - start)
    if not IS_SAMPLE:
        stop = tl.where(tl.load(state + row * 8) == 1.0, 0, stop)
    bins = tl.arange(0, BINS)
    found = tl.zeros([BINS], tl.int32)
    others = tl.zeros([MANY], tl.int32)
    for i in range(0, stop, MANY):
        place = start + i + tl.arange(0, MANY)
        place = place // RUN * RUN * every + place % RUN
        d = tl.load(p + place, mask=place < n, other=-1.0).to(tl.float64)
        is_other = ((d >= 0.0) & (d <= 1.0)) == 0
        bin = -(tl.abs(d).to(tl.int64, bitcast=True) >> 48) + ONE
        bin = tl.minimum(tl.maximum(bin, 0), BINS - 1).to(tl.int32)
        found += tl.histogram(tl.where(is_other, BINS - 1, bin), BINS)
        others += is_other.to(tl.int32)
    found -= tl.where(bins == BINS - 1, tl.sum(others), 0)
    tl.atomic_add(counts + row * BINS + bins, found.to(tl.int64), mask=found != 0)


@triton.jit
def _lost(t):
    """1 - e^{-t} to full relative precision."""
    series = t * 0.0 + 1.0
    for j in tl.static_range(13, 1, -1):
        series = 1.0 - t * series / j
    return tl.where(t < 0.25, t * series, 1.0 - tl.exp(-t))


@triton.jit
def _tilts(u, b):
    """w = 1 - e^{-bu} and x = e^{-bu}."""
    w, x = _lost(b * u), tl.maximum(tl.exp(-b * u), 1e-37)
    return w, tl.where(w < 0.5, 1.0 - w, x)


@triton.jit
def _coefficients(rule):
    """c, b_in, b_out, s0, s1."""
    c, b_in, b_out = tl.load(rule), tl.load(rule + 1), tl.load(rule + 2)
    return c, b_in, b_out, tl.load(rule + 3), tl.load(rule + 4)


@triton.jit
def _denominator(k, positives, rule):
    """The least denominator of k items or more."""
    _, b_in, b_out, _, s1 = _coefficients(rule)
    by_size, by_found = tl.minimum(b_in, b_out), tl.minimum(1.0 + b_in, b_out)
    return s1 + tl.maximum(k + by_size * positives, by_found * positives)


@triton.jit
def _margins(k, mean, variance, fewest, rule):
    """How far means of ratios and products may be from those of means (`band.margins`)."""
    _, b_in, b_out, _, _ = _coefficients(rule)
    least, x = _denominator(k * 0.0, fewest, rule), _denominator(k, fewest, rule)
    most = tl.maximum(b_in, b_out)
    change = tl.maximum(1.0, b_out / (1.0 + b_in)) * most * variance
    mean_x = x - tl.minimum(b_in, b_out) * fewest + most * mean
    kept = (1.0 - b_in / x) * (1.0 - b_out / least)
    value = most * most * variance / (least * least)
    return value, change * mean_x / (least * x * x), change * mean_x / (x * x * x), kept


@triton.jit
def _edges():
    """The lowest and the highest probability of each bin."""
    bins = tl.arange(0, BINS).to(tl.int64)
    low = ((-bins + ONE) << 48).to(tl.float64, bitcast=True)
    high = ((-tl.maximum(bins - 1, 0) + ONE) << 48).to(tl.float64, bitcast=True)
    return tl.where(bins == BINS - 1, 0.0, low), high


@triton.jit(do_not_specialize=["every"])
def _guess(counts, every, rule, state):
    """Guess Σ p and the highest ratio of means of a row, and a threshold (`band.guess`)."""
    row = tl.program_id(0).to(tl.int64)
    c, b_in, b_out, s0, s1 = _coefficients(rule)
    table = tl.load(counts + row * BINS + tl.arange(0, BINS)).to(tl.float64) * every
    low, high = _edges()
    each = table * (low + high) / 2.0
    k, mass, mean = tl.cumsum(table, 0), tl.cumsum(each, 0), tl.sum(each)
    x = k + (b_in - b_out) * mass + (b_out * mean + s1)
    v = tl.max((mass + s0 / c) / tl.maximum(x, 1e-30))
    suits = (b_out > 0.0) & (b_out >= b_in) & (s0 * (1.0 + b_in) <= c * s1)
    tl.store(state + row * 8, tl.where(suits & (mean >= 200.0), 0.0, 2.0))
    tl.store(state + row * 8 + 1, v)
    tl.store(state + row * 8 + 2, v / (1.0 + (b_out - b_in) * v))


@triton.jit(do_not_specialize=["first", "n", "part"])
def _above(where, first, n, KIND: tl.constexpr, part, state, partial):
    """Σ p of a part of a row, how many pixels are above the threshold, and their Σ p."""
    row, p = _pixels(where, first, n, KIND)
    start = tl.program_id(1).to(tl.int64) * part
    if tl.load(state + row * 8) == 0.0:
        cut = tl.load(state + row * 8 + 2)
        total, mass = tl.zeros([LANES], tl.float64), tl.zeros([LANES], tl.float64)
        count = tl.zeros([LANES], tl.int32)
        for i in range(0, tl.minimum(part, n - start), LANES):
            place = start + i + tl.arange(0, LANES)
            d = tl.load(p + place, mask=place < n, other=0.0).to(tl.float64)
            there = d > cut
            total += d
            count += there.to(tl.int32)
            mass += tl.where(there, d, 0.0)
        partial += (row * tl.num_programs(1) + tl.program_id(1)) * PARTIAL
        tl.store(partial, tl.sum(total))
        tl.store(partial + 1, tl.sum(count).to(tl.float64))
        tl.store(partial + 2, tl.sum(mass))


@triton.jit
def _total(partial, parts, row):
    """Sum up the numbers of the parts of a row; the last one is a minimum."""
    column, line = tl.arange(0, PARTIAL)[None, :], tl.arange(0, PARTS_AT_ONCE)[:, None]
    total = tl.zeros([PARTIAL], tl.float64)
    least = tl.full([PARTS_AT_ONCE], float("inf"), tl.float64)
    for i in range(0, parts, PARTS_AT_ONCE):
        there = i + line < parts
        block = tl.load(partial + (row * parts + i + line) * PARTIAL + column, there, other=0.0)
        total += tl.sum(block, 0)
        last = tl.where((column == PARTIAL - 1) & there, block, float("inf"))
        least = tl.minimum(least, tl.min(last, 1))
    return total, tl.min(least)


@triton.jit
def _pick(total, place):
    return tl.sum(tl.where(tl.arange(0, PARTIAL) == place, total, 0.0))


@triton.jit(do_not_specialize=["first", "n", "parts"])
def _narrow(partial, n, parts, rule, state):
    """Improve the threshold of a row, and put a narrow band around it (`band.narrow_band`)."""
    row = tl.program_id(0).to(tl.int64)
    state += row * 8
    if tl.load(state) == 0.0:
        c, b_in, b_out, s0, s1 = _coefficients(rule)
        sums, _ = _total(partial, parts, row)
        mean, k, mass = _pick(sums, 0), _pick(sums, 1), _pick(sums, 2)
        v, fewest, d = tl.load(state + 1), tl.maximum(0.0, mean - 9.0 * tl.sqrt(mean)), b_out - b_in
        steep = _lost(tl.maximum(b_in, b_out) * STEEPEST / _denominator(k, fewest, rule))
        better = (mass + s0 / c) / (k + b_in * mass + b_out * (mean - mass) + s1)
        cut, step = better / (1.0 + d * better), tl.abs(better - v) / better
        value, inside, _, kept = _margins(k, mean, mean, fewest, rule)
        needed = 4.0 * (value + inside / better + 1.0 - kept)
        narrowest = 0.0009765625 * tl.minimum(1.0, 4194304.0 / n)
        needed = tl.maximum(needed, narrowest)
        width = tl.maximum(needed, 16.0 * step * step)
        suits = (mass > 0.0) & (fewest > 0.0) & (steep <= FLAT)
        suits = suits & (needed <= 0.25) & (d * cut * (1.0 + needed) < 1.0)
        ready = suits & (width <= tl.maximum(needed, 0.00390625))
        tl.store(state, tl.where(ready, 1.0, tl.where(suits, 0.0, 2.0)))
        tl.store(state + 1, better)
        tl.store(state + 2, cut)
        tl.store(state + 3, cut * (1.0 - width))
        tl.store(state + 4, cut * (1.0 + 0.5 * width))
        tl.store(state + 5, cut * (1.0 + width))
        tl.store(state + 6, -1.0)


@triton.jit(do_not_specialize=["first", "n"])
def _wide(counts, n, rule, state):
    """Choose a band from the top for a row that has no narrow one (`band.wide_band`)."""
    row = tl.program_id(0).to(tl.int64)
    state += row * 8
    if tl.load(state) != 1.0:
        c, b_in, b_out, s0, s1 = _coefficients(rule)
        bins = tl.arange(0, BINS)
        size = tl.load(counts + row * BINS + bins).to(tl.float64)
        low_edge, high_edge = _edges()
        least, most = size * low_edge, size * high_edge
        k, low, high = tl.cumsum(size, 0), tl.cumsum(least, 0), tl.cumsum(most, 0)
        first, mean_low, mean = k - size + 1.0, tl.sum(least), tl.sum(most)
        worth = k + s1 + b_in * (1.0 + high) + b_out * tl.abs(mean_low - high)
        worth = tl.max(tl.where(size > 0.0, (c * low + s0) / worth, 0.0))
        fewest = tl.maximum(0.0, mean_low - 9.0 * tl.sqrt(mean_low))
        b, most_b = tl.minimum(b_in, b_out), tl.maximum(b_in, b_out)
        x = s1 + tl.maximum(first + b * fewest, tl.minimum(1.0 + b_in, b_out) * fewest)
        inside = tl.where(b_out > b_in, high, low - least)
        mean_x = tl.maximum(x, first + s1 + b_out * mean_low - (b_out - b_in) * inside)
        bound = (c * high + s0) / mean_x * (1.0 + most_b * most_b * mean / (x * x))
        bound = tl.minimum(bound, (c * high + s0) / (first + s1 + b_in * high))
        bound = tl.minimum(bound, (c * mean + s0) / (first + s1 + b * mean))
        may_be = (size > 0.0) & (bound >= worth - worth * 1e-12)
        begin = tl.min(tl.where(may_be, bins, BINS))
        end = tl.max(tl.where(may_be, bins, 0))
        above = tl.sum(tl.where(bins < begin, size, 0.0))
        start = tl.where(s1 == 0.0, above + 1.0, 0.0)  # smoothing: the empty set may be the best
        steep = _lost(most_b * STEEPEST / _denominator(start, fewest, rule))
        cut = tl.sum(tl.where(bins == end, low_edge, 0.0))
        # The rest is summed up by powers; no zeros are in the band
        cut = tl.minimum(cut, 1.0 / tl.maximum(steep / (FLAT / 4.0), 1.0))
        tl.store(state, 1.0)
        tl.store(state + 3, tl.where(cut > 0.0, cut, 1e-300 + cut * 0.0))
        tl.store(state + 4, cut)
        tl.store(state + 5, cut * 0.0 + 2.0)
        tl.store(state + 6, start)


@triton.jit(do_not_specialize=["first", "n", "part"])
def _around(where, first, n, KIND: tl.constexpr, part, state, partial):
    """Σ p and Σ p^j (1 - p) of the pixels of a part below the band, then of those above.

    Then there are how many are no probability, and last the least pixel above.
    """
    row, p = _pixels(where, first, n, KIND)
    start = tl.program_id(1).to(tl.int64) * part
    low, high = tl.load(state + row * 8 + 3), tl.load(state + row * 8 + 5)
    is_above = tl.arange(0, 2)[:, None] == 1
    s, v0 = tl.zeros([2, FEW], tl.float64), tl.zeros([2, FEW], tl.float64)
    v1, v2, v3, v4, v5, v6, v7 = v0, v0, v0, v0, v0, v0, v0
    bad = tl.zeros([1, FEW], tl.int32)
    least = tl.full([2, FEW], float("inf"), tl.float64)
    for i in range(0, tl.minimum(part, n - start), FEW):
        place = start + i + tl.arange(0, FEW)[None, :]
        d = tl.load(p + place, mask=place < n, other=0.0).to(tl.float64)
        valid = (d >= 0.0) & (d <= 1.0)
        bad += (valid == 0).to(tl.int32)
        there = valid & (place < n) & tl.where(is_above, d > high, d < low)
        least = tl.minimum(least, tl.where(there & is_above, d, float("inf")))
        d, r0 = tl.where(there, d, 0.0), tl.where(there, 1.0 - d, 0.0)
        square = d * d
        r1, r2, fourth = r0 * d, r0 * square, square * square
        r3 = r1 * square
        s, v0, v1, v2, v3 = s + d, v0 + r0, v1 + r1, v2 + r2, v3 + r3
        v4, v5, v6, v7 = v4 + r0 * fourth, v5 + r1 * fourth, v6 + r2 * fourth, v7 + r3 * fourth
    partial += (row * tl.num_programs(1) + tl.program_id(1)) * PARTIAL
    unused = tl.arange(0, PARTIAL)
    tl.store(partial + unused, unused * 0.0, mask=(unused > 18) & (unused < PARTIAL - 1))
    out = partial + 9 * tl.arange(0, 2)
    tl.store(out, tl.sum(s, 1))
    tl.store(out + 1, tl.sum(v0, 1))
    tl.store(out + 2, tl.sum(v1, 1))
    tl.store(out + 3, tl.sum(v2, 1))
    tl.store(out + 4, tl.sum(v3, 1))
    tl.store(out + 5, tl.sum(v4, 1))
    tl.store(out + 6, tl.sum(v5, 1))
    tl.store(out + 7, tl.sum(v6, 1))
    tl.store(out + 8, tl.sum(v7, 1))
    tl.store(partial + 18, tl.sum(bad).to(tl.float64))
    tl.store(partial + PARTIAL - 1, tl.min(least))


@triton.jit(do_not_specialize=["first", "n", "part"])
def _gather(
    where, first, n, KIND: tl.constexpr, part, state, band, filled,
    CAPACITY: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Copy the pixels of a band in any order; count those of each row."""
    row, p = _pixels(where, first, n, KIND)
    start = tl.program_id(1).to(tl.int64) * part
    low, high = tl.load(state + row * 8 + 3), tl.load(state + row * 8 + 5)
    for i in range(0, tl.minimum(part, n - start), LANES):
        place = start + i + tl.arange(0, LANES)
        d = tl.load(p + place, mask=place < n, other=-1.0).to(tl.float64)
        inside = (d >= low) & (d <= high)
        size = tl.sum(inside.to(tl.int32))
        if size > 0:
            begin = tl.atomic_add(filled + row, size.to(tl.int64))
            rank = begin + tl.cumsum(inside.to(tl.int32), 0) - 1
            tl.store(band + row * CAPACITY + rank, d, mask=inside & (rank < CAPACITY))


@triton.jit
def _by_powers(total, FROM: tl.constexpr, w, x, SUMS: tl.constexpr):
    """Σ log(1 - p w), Σ π, Σ (1 - π) and Σ π (1 - π) of pixels given by their power sums."""
    s = _pick(total, FROM)
    rest = w * 0.0 + _pick(total, FROM + 1)
    log, pi, variance, power = w * s, w * 0.0 + s, w * 0.0, w * 0.0 + 1.0
    for j in tl.static_range(1, SUMS - 1):
        v = _pick(total, FROM + 1 + j)
        variance += j * power * v
        power *= w
        s -= v
        pi += power * s
        rest += power * v
        log += power * w * s / (j + 1)
    return -log, x * pi, rest, x * variance


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def _factor(p, w, x):
    """1 - p w, without cancellation."""
    return tl.where(p < 0.5, 1.0 - p * w, x + (1.0 - p) * w)


@triton.jit
def _of_items(items, begin, end, w, x, ITEMS: tl.constexpr):
    """The four sums of `_by_powers` over some items; negative ones do not count."""
    log, pi, rest, variance = w * 0.0, w * 0.0, w * 0.0, w * 0.0
    for i in range(begin, end, ITEMS):
        place = i + tl.arange(0, ITEMS)
        p = tl.load(items + place, mask=place < end, other=-1.0).to(tl.float64)[:, None]
        counts, p = p >= 0.0, tl.maximum(p, 0.0)
        t = _factor(p, w[None, :], x[None, :])
        own, other = p * x[None, :] / t, tl.where(counts, (1.0 - p) / t, 0.0)
        log += tl.log(tl.reduce(t, 0, _multiply))  # what underflows has no weight
        pi += tl.sum(own, 0)
        rest += tl.sum(other, 0)
        variance += tl.sum(own * other, 0)
    return log, pi, rest, variance


@triton.jit
def _nodes(node_at, weight_at, m, many, unit, rule):
    """Some nodes and weights from the m-th on, and the tilts of a measure at them."""
    place = m + tl.arange(0, NODES)
    u = tl.load(node_at + place, mask=place < many, other=1.0) * unit
    weight = tl.load(weight_at + place, mask=place < many, other=0.0) * unit
    w_in, x_in = _tilts(u, tl.load(rule + 1))
    w_out, x_out = _tilts(u, tl.load(rule + 2))
    return u, weight, w_in, x_in, w_out, x_out


@triton.jit
def _may_end(band, taken, size, split):
    """Whether a set may end after so many items of a band: not between equal ones, if so asked."""
    before = tl.load(band + taken - 1, mask=(taken > 0) & (taken <= size), other=-1.0)
    after = tl.load(band + taken, mask=taken < size, other=-2.0)
    return (before != after) | (taken == 0) | (before * 0.0 + split != 0.0)


@triton.jit(do_not_specialize=["first", "n"])
def _short(
    where, first, n, KIND: tl.constexpr, rule, state, counts, partial, band, filled,
    CAPACITY: tl.constexpr, IS_WHOLE: tl.constexpr,
):  # fmt: skip
    """Choose a wide band of a row of one part, or all of it, sum around it and copy it."""
    here, s1 = state + tl.program_id(0).to(tl.int64) * 8, tl.load(rule + 4)
    tl.store(here, 2.0)
    if IS_WHOLE:
        tl.store(here + 3, 1e-300 + s1 * 0.0)  # no zeros
        tl.store(here + 4, s1 * 0.0)
        tl.store(here + 5, s1 * 0.0 + 2.0)
        tl.store(here + 6, tl.where(s1 == 0.0, 1.0, 0.0))
    else:
        _count(where, first, n, KIND, n, n, 1, state, counts, True)
        tl.debug_barrier()
        _wide(counts, n, rule, state)
    tl.debug_barrier()
    _around(where, first, n, KIND, n, state, partial)
    _gather(where, first, n, KIND, n, state, band, filled, CAPACITY, FEW if IS_WHOLE else MANY)


@triton.jit(do_not_specialize=["first", "n", "parts"])
def _decide(
    bands, works, partial, n, parts, filled, rule, quadrature, state, result,
    CAPACITY: tl.constexpr, MOST_NODES: tl.constexpr, SUMS: tl.constexpr, ITEMS: tl.constexpr,
):  # fmt: skip
    """Value every set that ends in the band of a row, and prove that the best one is the best."""
    row = tl.program_id(0).to(tl.int64)
    band, state = bands + row * CAPACITY, state + row * 8
    work = works + row * (2 * CAPACITY + 6 * MOST_NODES)
    steps, falls, kept = work, work + CAPACITY, work + 2 * CAPACITY
    c, b_in, b_out, s0, s1 = _coefficients(rule)
    zero, split, d = tl.load(rule + 5), tl.load(rule + 6), b_out - b_in
    total, least_above = _total(partial, parts, row)
    low, middle = tl.load(state + 3), tl.load(state + 4)
    high, start = tl.load(state + 5), tl.load(state + 6)
    size = tl.load(filled + row).to(tl.int32)
    decided = size <= CAPACITY
    size = tl.where(decided, size, 0)
    own, mass, variance, log_none = c * 0.0, c * 0.0, c * 0.0, c * 0.0
    upper = size * 0
    for i in range(0, size, 1024):
        place = i + tl.arange(0, 1024)
        p = tl.load(band + place, mask=place < size, other=0.0)
        own += tl.sum(p)
        variance += tl.sum(p * (1.0 - p))
        log_none += tl.sum(tl.log(tl.maximum(1.0 - p, 1e-300 + p * 0.0)))
        mass += tl.sum(tl.where(p > middle, p, 0.0))
        upper += tl.sum((p > middle).to(tl.int32))
    k = tl.floor(_pick(total, 9) + _pick(total, 10) + 0.5)
    mean = _pick(total, 0) + _pick(total, 9) + own
    narrow = start < 0.0
    root = 9.0 * tl.sqrt(mean)
    fewest, positives = tl.maximum(0.0, mean - root), tl.minimum(n * 1.0, mean + root + 20.0)
    least = tl.where(narrow, tl.maximum(k, 1.0), start)
    x = _denominator(least, tl.where(s0 == 0.0, tl.maximum(fewest, 1.0), fewest), rule)
    most_b = tl.maximum(b_in, b_out)
    steep = _lost(most_b * STEEPEST / x) * tl.where(k > 0.0, 1.0, low)
    decided = decided & (mean > 0.0) & (steep <= FLAT)
    furthest = tl.maximum(k + size, least) + s1 + most_b * positives
    # Nodes for these denominators
    nodes = x * 0.0 + SHORT
    is_short = x * RATIO >= furthest
    needed = (tl.log(furthest * TAIL / x) - FIRST) / (STEP * VECTOR_LANES)
    needed = tl.ceil(needed + 1.0 / VECTOR_LANES) * VECTOR_LANES
    nodes = tl.where(is_short, nodes, needed)
    decided = decided & (nodes <= MOST_NODES)
    unit = 1.0 / tl.where(is_short, x, furthest)
    many = tl.where(decided, nodes, 0.0).to(tl.int32)
    node_at = quadrature + tl.where(is_short, 0, 2 * SHORT)
    weight_at = node_at + tl.where(is_short, SHORT, TABLE)
    lane, item = tl.arange(0, NODES), tl.arange(0, ITEMS)
    last = c * 0.0
    for m in range(0, many, NODES):
        there = m + lane < many
        u, weight, w_in, x_in, w_out, x_out = _nodes(node_at, weight_at, m, many, unit, rule)
        log_in, pi, _, _ = _by_powers(total, 9, w_in, x_in, SUMS)
        log_out, _, _, _ = _by_powers(total, 0, w_out, x_out, SUMS)
        log_band, _, _, _ = _of_items(band, 0, size, w_out, x_out, ITEMS)
        a, scale = c * pi + s0, weight * tl.exp(log_in + log_out + log_band)
        last += tl.sum(scale * tl.exp(-u * (k + s1)) * a)
        decided = decided & ((d == 0.0) | (tl.min(tl.where(there, scale, 1.0)) >= 1e-290 + d * 0.0))
        lost, decay = _lost(u)[None, :], tl.exp(-u)[None, :]
        falling = tl.exp(-u[None, :] * item.to(tl.float64)[:, None])
        for i in range(0, size, ITEMS):
            place = i + item
            p = tl.load(band + place, mask=place < size, other=0.0)[:, None]
            gain = c * p * x_in[None, :] / _factor(p, w_in[None, :], x_in[None, :])
            before = a[None, :] + tl.cumsum(gain, 0) - gain
            now = falling * (scale * tl.exp(-u * (k + s1 + i)))[None, :]
            more = gain * 0.0
            if d != 0.0:
                more = p * (w_out - w_in)[None, :] / _factor(p, w_out[None, :], x_out[None, :])
                now = now * tl.cumprod(1.0 + more, 0) / (1.0 + more)
                scale *= tl.reduce(1.0 + more, 0, _multiply)
            down = now * lost * before
            step = tl.sum(now * decay * (gain + more * (before + gain)) - down, 1)
            fall = tl.sum(down, 1)
            if m > 0:
                step += tl.load(steps + place, mask=place < size, other=0.0)
                fall += tl.load(falls + place, mask=place < size, other=0.0)
            tl.store(steps + place, step, mask=place < size)
            tl.store(falls + place, fall, mask=place < size)
            a += tl.sum(gain, 0)
        tl.debug_barrier()
    # The best set that ends in the band, and others that are too near (`node_kernels.tell_apart`)
    first = tl.where(narrow, (k == 0.0).to(tl.float64), start).to(tl.int32)
    value, best, top = c * 0.0, tl.where(first == 0, 0.0, c * 0.0 - float("inf")), size * 0 - 1
    top = tl.where(first == 0, 0, top)
    for i in range(0, size, 64):
        place = i + tl.arange(0, 64)
        step = tl.load(steps + place, mask=place < size, other=0.0)
        f = value + tl.cumsum(step, 0)
        allowed = (place < size) & (place + 1 >= first) & _may_end(band, place + 1, size, split)
        f = tl.where(allowed, f, float("-inf"))
        here = tl.max(f)
        if here > best:
            best, top = here, tl.min(tl.where(f == here, place, 2147483647)) + 1
        value += tl.sum(step)
    last += value
    decided = decided & (top >= 0)
    top = tl.where(decided, top, 0)
    doubt = 1e-12 + 1e-16 * size.to(tl.float64)
    f_carry, error_carry = c * 0.0, c * 0.0
    for i in range(top // 64 * 64, size, 64):
        place = i + tl.arange(0, 64)
        there = (place >= top) & (place < size)
        step = tl.load(steps + place, mask=there, other=0.0)
        fall = tl.load(falls + place, mask=there, other=0.0)
        f, error = f_carry + tl.cumsum(step, 0), error_carry + doubt * tl.cumsum(fall, 0)
        rival = (
            there & (f >= -error) & (place + 1 >= first) & _may_end(band, place + 1, size, split)
        )
        decided = decided & (tl.sum(rival.to(tl.int32)) == 0)
        f_carry += tl.sum(step)
        error_carry += doubt * tl.sum(fall)
    f_carry, error_carry = c * 0.0, c * 0.0
    blocks = (top + 63) // 64
    for each in range(blocks):
        place = (blocks - 1 - each) * 64 + tl.arange(0, 64)
        there = (place < top) & (place >= first)
        step = tl.load(steps + place, mask=there, other=0.0)
        fall = tl.load(falls + place, mask=there, other=0.0)
        f = -f_carry - tl.cumsum(step, 0, reverse=True)
        error = error_carry + doubt * tl.cumsum(fall, 0, reverse=True)
        rival = there & (f >= -error) & _may_end(band, place, size, split)
        decided = decided & (tl.sum(rival.to(tl.int32)) == 0)
        f_carry += tl.sum(step)
        error_carry += doubt * tl.sum(fall)
    # Mean and spread of the best set (`node_kernels.value_and_spread`, `node_kernels.spread`)
    is_known = (k == 0.0) & (low <= FLAT / 2.0) & (mean < 700.0)
    below, log_rest = _pick(total, 0), c * 0.0
    for j in tl.static_range(1, SUMS):
        log_rest -= below / j
        below -= _pick(total, j + 1) if j + 1 < SUMS else 0.0
    log_none = tl.where(is_known, log_none + log_rest, -mean)
    none = tl.where(is_known, tl.exp(log_none), 0.0)
    denominator, own_share = k + top + s1, c - b_in
    f, loss, reach, reach_square = c * 0.0, c * 0.0, c * 0.0, c * 0.0
    for m in range(0, many, NODES):
        there = m + lane < many
        u, weight, w_in, x_in, w_out, x_out = _nodes(node_at, weight_at, m, many, unit, rule)
        log_in, pi, rest, spread_in = _by_powers(total, 9, w_in, x_in, SUMS)
        log_out, out, _, spread_out = _by_powers(total, 0, w_out, x_out, SUMS)
        log_item, pi_item, rest_item, spread_item = _of_items(band, 0, top, w_in, x_in, ITEMS)
        pi, rest, spread_in = pi + pi_item, rest + rest_item, spread_in + spread_item
        log = log_in + log_out + log_item
        log_item, pi_item, _, spread_item = _of_items(band, top, size, w_out, x_out, ITEMS)
        out, spread_out = out + pi_item, spread_out + spread_item
        reached = weight * tl.exp(-u * denominator)
        outer = weight * tl.exp(log + log_item - u * denominator)
        reach += tl.sum(reached)
        reach_square += tl.sum(reached * u)
        f += tl.sum(outer * (c * pi + s0))
        loss += tl.sum(outer * (rest + (1.0 - own_share) * pi + b_out * out + s1 - s0))
        tl.store(kept + m + lane, outer * u, mask=there)
        tl.store(kept + MOST_NODES + m + lane, pi, mask=there)
        tl.store(kept + 2 * MOST_NODES + m + lane, rest, mask=there)
        tl.store(kept + 3 * MOST_NODES + m + lane, spread_in, mask=there)
        tl.store(kept + 4 * MOST_NODES + m + lane, out, mask=there)
        tl.store(kept + 5 * MOST_NODES + m + lane, spread_out, mask=there)
    tl.debug_barrier()
    missing, missing_square = (
        none * (1.0 / denominator - reach),
        none * (1.0 / (denominator * denominator) - reach_square),
    )
    loss += (denominator - s0) * missing
    f = tl.where(f > 0.5, 1.0 - loss, f)
    suits = c == 1.0 + b_in
    share = tl.where(suits, 1.0, own_share) + b_in * loss
    by_rest = suits & (f > (1.0 + b_in) * loss)
    slope = tl.where(by_rest, -share, share)
    offset = tl.where(by_rest, (1.0 + b_in) * loss, -f) * (k + top)
    square = missing_square * (s0 - f * denominator) * (s0 - f * denominator)
    for m in range(0, many, NODES):
        there = m + lane < many
        outer = tl.load(kept + m + lane, mask=there, other=0.0)
        at = tl.load(kept + tl.where(by_rest, 2, 1) * MOST_NODES + m + lane, mask=there, other=0.0)
        spread_in = tl.load(kept + 3 * MOST_NODES + m + lane, mask=there, other=0.0)
        out = tl.load(kept + 4 * MOST_NODES + m + lane, mask=there, other=0.0)
        spread_out = tl.load(kept + 5 * MOST_NODES + m + lane, mask=there, other=0.0)
        mean_of = slope * at + offset - f * b_out * out + (s0 - f * s1)
        both = share * share * spread_in + f * f * b_out * b_out * spread_out
        square += tl.sum(outer * (both + mean_of * mean_of))
    # The proof of a narrow band (`band.is_proven`)
    variance += _pick(total, 2) + _pick(total, 11)
    mass, k_end = mass + _pick(total, 9), k + size
    value, inside, _, kept_part = _margins(k, mean, variance, fewest, rule)
    _, _, beyond, _ = _margins(k_end, mean, variance, fewest, rule)
    most = middle / (1.0 - d * middle) * (1.0 + value)
    rest_of = middle * (b_out * mean + s1) - s0 / c * (1.0 - d * middle)
    is_bound = mass - middle * (k + upper) <= rest_of - 1e-9 * middle * b_out * mean
    few = high * kept_part
    no_less = (most + inside) * (1.0 - few * d) <= few - few * 1e-9
    more_than = (last / c - beyond) * (1.0 - low * d)
    no_more = low <= more_than - tl.abs(more_than) * 1e-9
    proven = ((k == 0.0) | (is_bound & no_less)) & no_more & (d * high < 1.0)
    decided = decided & ((narrow == 0) | proven)
    # The empty set (`band._or_nothing`)
    decided = decided & (f > 1e-290 + f * 0.0)
    chance = tl.exp(tl.where(b_out == 0.0, 0.0, log_none))
    competes = (zero > 0.0) & (s1 == 0.0) & (zero * chance >= f - f * 1e-12)
    empty = competes & (zero * chance > f + f * 1e-12) & (is_known | (b_out == 0.0))
    decided = decided & ((competes == 0) | empty)
    std = tl.sqrt(tl.maximum(square, 0.0))
    # Threshold, and how many pixels equal to it are too many
    at_top = tl.load(band + tl.maximum(top - 1, 0))
    threshold = tl.where(top > 0, at_top, tl.where(k > 0.0, least_above, float("inf")))
    threshold = tl.where(empty, float("inf"), threshold)
    equal = size * 0
    for i in range(0, size, 1024):
        place = i + tl.arange(0, 1024)
        p = tl.load(band + place, mask=place < size, other=-1.0)
        equal += tl.sum((p >= threshold).to(tl.int32))
    bad = _pick(total, 18)
    result += row * 6
    tl.store(result, tl.where(bad > 0.0, -1.0, decided.to(tl.float64)))
    tl.store(result + 1, tl.where(empty, 0.0, k + top))
    tl.store(result + 2, threshold)
    tl.store(result + 3, tl.where(empty, zero * chance, f))
    tl.store(result + 4, tl.where(empty, zero * tl.sqrt(chance * (1.0 - chance)), std))
    tl.store(result + 5, tl.where((top > 0) & (empty == 0), (equal - top).to(tl.float64), 0.0))


@triton.jit(do_not_specialize=["first", "n", "part"])
def _mark(where, first, n, KIND: tl.constexpr, part, result):
    """Mark the pixels from the threshold on."""
    row, p = _pixels(where, first, n, KIND)
    start = tl.program_id(1).to(tl.int64) * part
    masks = tl.load(where + 1).to(tl.pointer_type(tl.int8)) + (first + row) * n
    threshold = tl.load(result + row * RESULT + 2)
    for i in range(0, tl.minimum(part, n - start), LANES):
        place = start + i + tl.arange(0, LANES)
        d = tl.load(p + place, mask=place < n, other=-1.0).to(tl.float64)
        tl.store(masks + place, (d >= threshold).to(tl.int8), mask=place < n)
