r"""Compiled loops at the nodes: products, tilted sums, steps from set to set, the spread.

Kernels are arrays in, arrays out, without validation, imported when the first one is needed. Every
kernel releases the interpreter lock and takes read-only inputs (`arrays.readonly`), so that one
compiled version serves memory maps, frozen arrays and plain ones.

The label of an item, tilted by x = e^{-bu}, is positive with probability π = p x / (1 - p w),
w = 1 - x. Loops over items run over the nodes inside, where the compiler vectorizes.

A set has Q = Π_{in} (1 - p w_in) Π_{out} (1 - p w_out), A = c Σ_{in} π + s0 at each node u
(`quadrature.py`), and f = Σ ω e^{-u (k + s1)} Q A. Every set that ends in a band of items is valued
by exact differences (`band.py`), and so are sorted sets (`small_set_kernels.py`). Sums over the
items around a band come from sums of their powers (`pass_kernels.py`).
"""

from __future__ import annotations

import math

import numpy as np

from argmaxf._base.compiled import kernel, reordering_kernel
from argmaxf.expected.pass_kernels import POWERS, SUMS, add_powers
from argmaxf.expected.quadrature import reciprocal_nodes
from argmaxf.measures import Coefficients

LEAST_TILT = math.exp(-120.0)  # below this a tilted term is lost even times β⁴; keeps 0/0 away
BLOCK = 64  # items between two looks at products, or two fresh evaluations of e^{-uk}
# A product is multiplied by RESCALE once it is below LEAST_PRODUCT: three factors more cannot make
# it underflow.
LEAST_PRODUCT = 2.0**-400
RESCALE = 2.0**540
LOG_RESCALE = 540.0 * math.log(2.0)
GONE = -500.0  # log of what is nothing beside other terms, and still far from underflow
# A step's parts are known to 2e-12 by the nodes, and as well by rounding of 16,384 factors of G.
STEP_ERROR = 1e-11
SMALL_LOG = 2.0**-6  # Σ p w at most, for Σ log(1 - p w) to be a power series
RARE = 1 / 32  # sums over items below this are power series, the rest of which is below (w / 32)⁸

# What is known at the nodes lies in one array, each quantity PITCH numbers after the one before:
# constant distances are what the compiler needs to vectorize loops over several of them.
PITCH = 320  # no rule has more nodes
U, WEIGHT, DECAY = 0, PITCH, 2 * PITCH  # u, ω e^{-u s1} and e^{-u}
INSIDE, OUTSIDE = 3 * PITCH, 5 * PITCH  # w = 1 - e^{-bu}, then x = e^{-bu}, of b_in and of b_out
SIZE, LOW, HIGH = 7 * PITCH, 7 * PITCH + 1, 7 * PITCH + 2  # how many nodes, for which range
RULE = 7 * PITCH + 3
# Sums over a set lie in another one: ω e^{-u(k+s1)} Q, then Σ π, Σ (1 - π) and Σ π (1 - π) of the
# items inside, and of those outside; room for the rest; G, and a logarithm to be added to its own.
OUTER, IN, OUT, MORE, G = 0, PITCH, 4 * PITCH, 7 * PITCH, 11 * PITCH
REST, VARIANCE, LOG = PITCH, 2 * PITCH, 3 * PITCH
NODE_SUMS = 13 * PITCH


@kernel
def tilt(u, b):
    """w = 1 - e^{-bu} and x = e^{-bu}, both to full relative precision; b = β² for F_β."""
    w = np.empty(u.size)
    x = np.empty(u.size)
    for m in range(u.size):
        t = b * u[m]
        if t < 0.7:
            w[m] = -math.expm1(-t)
            x[m] = 1.0 - w[m]
        else:
            x[m] = max(math.exp(-t), LEAST_TILT)
            w[m] = 1.0 - x[m]
    return w, x


@kernel
def factor(p, q):
    """1 - p w as a + b x + c w, q = 1 - p: nothing cancels for p and w anywhere in [0, 1]."""
    return (1.0, 0.0, -p) if p < 0.5 else (0.0, 1.0, q)


@kernel
def log_factor(p, q, w, x):
    """log(1 - p w) to full relative precision, q = 1 - p."""
    return math.log1p(-p * w) if p * w < 0.5 else math.log(x + q * w)


@kernel
def set_rule(rule, low, high, c):
    """Fill the nodes for a range of denominators, with the tilts of a measure; return the rule."""
    u, weight = reciprocal_nodes(low, high)
    size = u.size
    w_in, x_in = tilt(u, c.b_in)
    w_out, x_out = (w_in, x_in) if c.b_in == c.b_out else tilt(u, c.b_out)
    for m in range(size):
        rule[U + m], rule[WEIGHT + m] = u[m], weight[m] * math.exp(-u[m] * c.s1)
        rule[DECAY + m] = math.exp(-u[m])
        rule[INSIDE + m], rule[INSIDE + PITCH + m] = w_in[m], x_in[m]
        rule[OUTSIDE + m], rule[OUTSIDE + PITCH + m] = w_out[m], x_out[m]
    rule[SIZE], rule[LOW], rule[HIGH] = size, low, high
    return rule


@kernel
def rescale(out, size):
    """Multiply products that are nearly lost, exactly; their logarithms take note of it."""
    for m in range(size):
        if out[m] < LEAST_PRODUCT:
            out[m] *= RESCALE
            out[PITCH + m] -= LOG_RESCALE


@reordering_kernel
def multiply(ascending, start, stop, tilts, size, out):
    """Multiply products by 1 - p w of some sorted items: two or one of them at a time."""
    i = start
    while i + 2 <= stop and ascending[i + 1] < 0.5:
        a, b = ascending[i] + ascending[i + 1], ascending[i] * ascending[i + 1]
        for m in range(size):
            out[m] *= 1.0 - tilts[m] * (a - b * tilts[m])
        i += 2
    for j in range(i, stop):
        a, b, c = factor(ascending[j], 1.0 - ascending[j])
        for m in range(size):
            out[m] *= a + b * tilts[PITCH + m] + c * tilts[m]
        if j % 3 == 2 and ascending[j] >= 0.5:
            rescale(out, size)


@kernel
def products(ascending, tilts, size, out):
    """Fill Π (1 - p w) over sorted items as a number and, PITCH after it, a logarithm to be added.

    `tilts` has w, and x = 1 - w after PITCH numbers. Products are rescaled before they underflow: a
    block of items below one half cannot lose one that was just rescaled. Equal values round
    equally: their product would drift, the logarithm does not. Return whether a logarithm is not 0.
    """
    n = ascending.size
    for m in range(size):
        out[m], out[PITCH + m] = 1.0, 0.0
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        p = ascending[start]
        if p == ascending[stop - 1] and stop > start + 1:
            for m in range(size):
                log_one = log_factor(p, 1.0 - p, tilts[m], tilts[PITCH + m])
                out[PITCH + m] += (stop - start) * log_one
            continue
        multiply(ascending, start, stop, tilts, size, out)
        rescale(out, size)
    scaled = False
    for m in range(size):
        scaled |= out[PITCH + m] != 0.0
    return scaled


@kernel
def log_products(ascending, tilts, size, out):
    """Fill Σ log(1 - p w) over sorted items, PITCH after their product."""
    products(ascending, tilts, size, out)
    for m in range(size):
        out[PITCH + m] += math.log(out[m])
        out[m] = math.exp(out[PITCH + m])


@reordering_kernel
def add_series(sums, tilts, size, out):
    """Add items given by sums of their powers (pass_kernels.py) to what `tilted_sums` fills.

    At each node also Σ log(1 - p w), PITCH after the rest.
    """
    for m in range(size):
        w, x = tilts[m], tilts[PITCH + m]
        s, power = sums[0], 1.0  # S_j and w^{j-1}
        log, pi, rest, variance = w * s, s, sums[1], 0.0
        for j in range(1, POWERS):
            v = sums[1 + j]
            variance += j * power * v
            power *= w
            s -= v
            pi += power * s
            rest += power * v
            log += power * w * s / (j + 1)
        out[m] += x * pi
        out[REST + m] += rest
        out[VARIANCE + m] += x * variance
        out[LOG + m] -= log


@reordering_kernel
def add_pair(p1, q1, p2, q2, tilts, size, out):
    """Add two items to what `tilted_sums` fills, q = 1 - p: two reciprocals cost one division."""
    a1, b1, c1 = factor(p1, q1)
    a2, b2, c2 = factor(p2, q2)
    pq1, pq2 = p1 * q1, p2 * q2
    for m in range(size):
        w, x = tilts[m], tilts[PITCH + m]
        f1 = a1 + b1 * x + c1 * w
        f2 = a2 + b2 * x + c2 * w
        inverse = 1.0 / (f1 * f2)
        inverse1 = f2 * inverse
        inverse2 = f1 * inverse
        out[m] += x * (p1 * inverse1 + p2 * inverse2)
        out[REST + m] += q1 * inverse1 + q2 * inverse2
        out[VARIANCE + m] += x * (pq1 * inverse1 * inverse1 + pq2 * inverse2 * inverse2)


@kernel
def tilted_sums(items, start, stop, tilts, size, out):
    """Fill Σ π, Σ (1 - π) and Σ π (1 - π) over some items, at each node; the rare ones come first.

    `out` needs room for one more sum.
    """
    rare = start
    while rare < stop and items[rare] < RARE:
        rare += 1
    for m in range(size):
        out[m] = out[REST + m] = out[VARIANCE + m] = out[LOG + m] = 0.0
    if rare > start:
        sums = np.zeros(SUMS)
        add_powers(items[start:rare], -1.0, 2.0, sums)
        add_series(sums, tilts, size, out)
    for i in range(rare, stop - 1, 2):
        add_pair(items[i], 1.0 - items[i], items[i + 1], 1.0 - items[i + 1], tilts, size, out)
    if (stop - rare) % 2 == 1:
        add_pair(items[stop - 1], 1.0 - items[stop - 1], 0.0, 0.0, tilts, size, out)


@kernel
def zero_over_zero(zero_division, log_none):
    """Mean and standard deviation of `zero_division` where no item is positive, 0 elsewhere.

    That is the measure of the empty set without smoothing; `log_none` is log P(S = 0), or 0 if
    positives left out do not count. The spread of an indicator is √(P (1 - P)).
    """
    none = math.exp(log_none)
    return zero_division * none, zero_division * math.sqrt(none * abs(math.expm1(log_none)))


@kernel
def none_positive(p):
    """P(S = 0) = Π (1 - p); 0 where it is too small to matter."""
    product = 1.0
    for i in range(p.size - 1, -1, -1):
        product *= 1.0 - p[i]
        if product < 1e-300:
            return 0.0
    return product


@reordering_kernel
def spread(k, f, c, u, size, sums, missing):
    """The standard deviation of the measure for k items with the mean f, by sums at the nodes.

    Var F = E[(numerator - f · denominator)² / x²], and 1/x² = Σ ω u e^{-ux}. Under the tilt the
    bracket, a T - f b_out R + s0 - f (k + s1) with a = c - b_in f, is a sum of independent labels:
    its second moment is its variance plus its squared mean, all terms are ≥ 0, nothing cancels.
    Since b_in may be large, a = (c - b_in) + b_in (1 - f), with the loss summed anew:

        1 - f = E[(k - (c - b_in) T + b_out R + s1 - s0) / x],   for F_β E[(k - T + β² R) / x];

    and where little is missed, the mean is written in terms of what is. `missing` is what the nodes
    lack of P(S = 0) / x and P(S = 0) / x², where no item is positive.
    """
    suits = c.c == 1.0 + c.b_in  # then the measure is 1 without errors
    own = 1.0 if suits else c.c - c.b_in
    loss = (k + c.s1 - c.s0) * missing[0]
    for m in range(size):
        missed = sums[IN + REST + m] + (1.0 - own) * sums[IN + m] + c.b_out * sums[OUT + m]
        loss += sums[OUTER + m] * (missed + (c.s1 - c.s0))
    a, b = own + c.b_in * loss, -f * c.b_out
    square = missing[1] * (c.s0 - f * (k + c.s1)) ** 2
    at, slope, offset = IN, a, -f * k
    if suits and f > (1.0 + c.b_in) * loss:
        at, slope, offset = IN + REST, -a, (1.0 + c.b_in) * loss * k
    for m in range(size):
        mean = slope * sums[at + m] + offset + b * sums[OUT + m] + (c.s0 - f * c.s1)
        variance = a * a * sums[IN + VARIANCE + m] + b * b * sums[OUT + VARIANCE + m]
        square += sums[OUTER + m] * u[m] * (variance + mean * mean)
    return math.sqrt(max(0.0, square))


@kernel
def sums_at_nodes(items, start, stop, sums, w, x):
    """Σ log(1 - p w), Σ π, Σ (1 - π) and Σ π (1 - π) over items, and others given by their powers.

    Items are in ascending order.
    """
    size, own, scratch = w.size, np.zeros(SUMS), np.zeros((4, 4 * PITCH))
    tilts, logs, series, found = scratch[0], scratch[1], scratch[2], scratch[3]
    for m in range(size):
        tilts[m], tilts[PITCH + m] = w[m], x[m]
    log_products(items[start:stop], tilts, size, logs)
    add_powers(items[start:stop], -1.0, 2.0, own)
    add_series(own, tilts, size, series)
    tilted_sums(items, start, stop, tilts, size, found)
    for m in range(size):  # the logarithm of a product near 1 would lose digits
        found[LOG + m] = series[LOG + m] if w[m] * own[0] < SMALL_LOG else logs[PITCH + m]
    add_series(sums, tilts, size, found)
    out = np.empty((4, size))
    for m in range(size):
        out[0, m], out[1, m] = found[LOG + m], found[m]
        out[2, m], out[3, m] = found[REST + m], found[VARIANCE + m]
    return out


@reordering_kernel
def climb(inside, outside, rule, c, mean, a, log_outer, f, steps, falls):
    """Fill in what each item, taken in after those above it, adds to f, and f with it.

    With A and log(ω Q e^{-u(k+s1)}) of the k items above, which are used up, f_k - f_{k-1} =
    Σ ω Q e^{-u(k-1+s1)} [e^{-u} (g + (r - 1) (A + g)) - (1 - e^{-u}) A]; the item adds g to A and
    multiplies Q by r = (1 - p w_in) / (1 - q w_out). The last term is also what f falls by with an
    item of p = 0. Items may have one probability p inside the set and another, q, outside, both
    ascending. Ends after `mean`, Σ p of small sets, says that no larger set can be better; returns
    the last place filled.
    """
    n, size, best, stop = inside.size, int(rule[SIZE]), 0.0, 0
    outer, lost, apart, logs = np.empty(size), np.empty(size), np.empty(size), np.empty(2 * PITCH)
    above, part = np.empty(size), np.empty(size)  # A of a block's first set, and of its items
    for m in range(size):
        lost[m] = -math.expm1(-rule[U + m])
        small = rule[OUTSIDE + m] < 0.5  # w_out - w_in = x_in - x_out, in full precision
        apart[m] = rule[OUTSIDE + m] - rule[INSIDE + m] if small else 0.0
        apart[m] += 0.0 if small else rule[INSIDE + PITCH + m] - rule[OUTSIDE + PITCH + m]
    for i in range(n):
        if i == stop:  # rounding does not build up beyond a block
            stop = min(i + BLOCK, n)
            for m in range(size):
                outer[m], above[m], part[m] = math.exp(log_outer[m]), a[m], 0.0
                if log_outer[m] < GONE < log_outer[m] + BLOCK * c.b_out * rule[U + m]:
                    stop = i + 1  # what is lost may come back where items left out cost much
            for m in range(size):
                log_outer[m] -= rule[U + m] * (stop - i)
            for items, at, sign in ((inside, INSIDE, 1.0), (outside, OUTSIDE, -1.0)):
                log_products(items[n - stop : n - i], rule[at:], size, logs)
                for m in range(size):
                    log_outer[m] += sign * logs[PITCH + m]
        p, q = inside[n - 1 - i], outside[n - 1 - i]
        a0, a1, a2 = factor(p, 1.0 - p)
        b0, b1, b2 = factor(q, 1.0 - q)
        value = step = fall = 0.0
        for m in range(size):
            x, w_out = rule[INSIDE + PITCH + m], rule[OUTSIDE + m]
            f_in = a0 + a1 * x + a2 * rule[INSIDE + m]
            f_out = b0 + b1 * rule[OUTSIDE + PITCH + m] + b2 * w_out
            inverse = 1.0 / (f_in * f_out)
            gain = c.c * p * x * f_out * inverse
            more = (p * apart[m] + (q - p) * w_out) * f_in * inverse
            now, down = outer[m] * rule[DECAY + m], outer[m] * lost[m] * a[m]
            step += now * (gain + more * (a[m] + gain)) - down
            fall += down
            part[m] += gain
            a[m] = above[m] + part[m]
            outer[m] = now + now * more
            value += outer[m] * a[m]
        f[i + 1], steps[i], falls[i] = value, step, fall
        best = max(best, value)
        if c.c * mean + c.s0 < (i + 2 + c.s1 + min(c.b_in, c.b_out) * mean) * best * (1.0 - 1e-12):
            return i + 1
    return n


@kernel
def may_end(items, k, split):
    """Whether a set may end after the k most probable items: not between equal ones, if asked."""
    n = items.size
    return split or k == 0 or k == n or items[n - k] != items[n - k - 1]


@kernel
def tell_apart(first, last, steps, falls, f):
    """Set f of sets that are certainly not the best to -1, of those that are not; return the best.

    Sets of `first` items to `last` are compared by steps from one to the next, each known to a part
    of its terms. They are summed up from the best set on, so that rounding is in proportion to
    differences.
    """
    best, ahead = -1, np.inf  # f of k is so much above that of the best
    for k in range(first, last + 1):
        ahead += steps[k - 1] if k > first else 0.0
        if f[k] > -1.0 and ahead > 0.0:
            best, ahead = k, 0.0
    ahead = error = 0.0
    for k in range(best + 1, last + 1):
        ahead += steps[k - 1]
        error += STEP_ERROR * falls[k - 1]
        if ahead < -error:
            f[k] = -1.0
    ahead = error = 0.0
    for k in range(best - 1, first - 1, -1):
        ahead -= steps[k]
        error += STEP_ERROR * falls[k]
        if ahead < -error:
            f[k] = -1.0
    return best


@kernel
def value_and_spread(k, inside, outside, none, nodes, c):
    """Mean and standard deviation of the measure for a set of k items.

    `inside` and `outside` have the sums of `sums_at_nodes` over it and over the others, `none` is
    P(S = 0), for which the nodes need not suffice. Above one half f is what the loss leaves of 1.
    """
    u, weight = nodes[0], nodes[1]
    x, own, sums = k + c.s1, c.c - c.b_in, np.empty(MORE)
    f = loss = reach = reach_square = 0.0
    for m in range(u.size):
        decay = weight[m] * math.exp(-u[m] * x)
        reach += decay
        reach_square += decay * u[m]
        outer = weight[m] * math.exp(inside[0, m] + outside[0, m] - u[m] * x)
        sums[OUTER + m] = outer
        for j in range(3):
            sums[IN + j * PITCH + m] = inside[1 + j, m]
            sums[OUT + j * PITCH + m] = outside[1 + j, m]
        f += outer * (c.c * inside[1, m] + c.s0)
        less = inside[2, m] + (1.0 - own) * inside[1, m] + c.b_out * outside[1, m]
        loss += outer * (less + c.s1 - c.s0)
    missing = 0.0, 0.0
    if none > 0.0:
        missing = none * (1.0 / x - reach), none * (1.0 / x**2 - reach_square)
    f = 1.0 - loss - (x - c.s0) * missing[0] if f > 0.5 else f
    return f, spread(k, f, c, u, u.size, sums, missing)


@kernel
def sums_of_set(items, cut, sums, rule):
    """Sums at the nodes over the items above a band and from `cut` on, and over all others."""
    tilts = np.empty((4, int(rule[SIZE])))
    for j in range(4):
        for m in range(tilts.shape[1]):
            tilts[j, m] = rule[INSIDE + j * PITCH + m]
    inside = sums_at_nodes(items, cut, items.size, sums[1], tilts[0], tilts[1])
    return inside, sums_at_nodes(items, np.int64(0), cut, sums[0], tilts[2], tilts[3])


@kernel
def decide_band(items, sums, low, high, first, split, none, ratio):
    """Return the best set that ends in a band, given its items in ascending order and sums around.

    Denominators are from `low` to `high`. Sets have `first` items of the band or more. Returns how
    many items of the band are in the best set, -1 if that is in doubt; its mean and spread; and f
    of all items down to the end of the band.
    """
    c = Coefficients(ratio[0], ratio[1], ratio[2], ratio[3], ratio[4])
    rule = set_rule(np.empty(RULE), low, high, c)
    n, k = items.size, np.rint(sums[1, 0] + sums[1, 1])
    inside, outside = sums_of_set(items, n, sums, rule)
    a, log_outer = np.empty(inside.shape[1]), np.empty(inside.shape[1])
    f, steps, falls = np.zeros(n + 1), np.empty(n), np.empty(n)
    for m in range(a.size):
        a[m] = c.c * inside[1, m] + c.s0
        log_outer[m] = math.log(rule[WEIGHT + m]) + inside[0, m] + outside[0, m] - rule[U + m] * k
        f[0] += math.exp(log_outer[m]) * a[m]
    climb(items, items, rule, c, np.inf, a, log_outer, f, steps, falls)
    last = f[n]
    for i in range(n + 1):
        f[i] = 0.0 if i >= first and may_end(items, i, split) else -1.0
    best = tell_apart(first, n, steps, falls, f)
    if best < 0 or np.sum(f > -1.0) > 1:
        return -1, 0.0, 0.0, 0.0
    inside, outside = sums_of_set(items, n - best, sums, rule)
    nodes = reciprocal_nodes(low, high)
    f, std = value_and_spread(k + best, inside, outside, none, nodes, c)
    return best, f, std, last


@kernel
def longest(offsets):
    """How many items the longest of the sets has that lie one after another."""
    most = 0
    for r in range(offsets.size - 1):
        most = max(most, offsets[r + 1] - offsets[r])
    return most
