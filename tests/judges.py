"""Independent judges of expected values: the definition, 40-digit arithmetic, and the families."""

import itertools
from functools import cache

import mpmath
import numpy as np
from mpmath.calculus.quadrature import GaussLegendre

mpmath.mp.dps = 70  # so that sets whose values differ in the 48th digit are still told apart
number = cache(mpmath.mpf)  # of counts, which come again and again


def fbeta(beta=1.0):
    """F_β as numerator and denominator, from the true positives, k, all positives and n."""
    b2 = mpmath.mpf(beta) ** 2
    return lambda t, k, s, n: ((1 + b2) * t, k + b2 * s)


def jaccard(t, k, s, n):
    """The Jaccard index as numerator and denominator."""
    return mpmath.mpf(t), mpmath.mpf(k + s - t)


def value(formula, t, k, s, n, zero_division):
    """A measure from counts, in many digits, with the convention for 0/0."""
    numerator, denominator = formula(*map(number, (t, k, s, n)))
    return numerator / denominator if denominator else mpmath.mpf(zero_division)


def definition(p, selected, beta=1.0, *, formula=None, zero_division=0.0):
    """Mean and standard deviation of F (or of `formula`) over all 2ⁿ label vectors."""
    formula = formula or fbeta(beta)
    p = [mpmath.mpf(float(v)) for v in p]
    k = sum(map(bool, selected))
    masses = [mpmath.mpf(1)]
    for v in p:
        masses = [mass * each for mass in masses for each in (1 - v, v)]
    states = []
    for mass, y in zip(masses, itertools.product((0, 1), repeat=len(p)), strict=True):
        true = sum(yi for yi, s in zip(y, selected, strict=True) if s)
        states.append((mass, value(formula, true, k, sum(y), len(p), zero_division)))
    mean = mpmath.fsum(m * v for m, v in states)
    variance = mpmath.fsum(m * (v - mean) ** 2 for m, v in states)
    return mean, mpmath.sqrt(variance)


def curve_40_digits(p, beta=1.0, *, formula=None, zero_division=0.0):
    """f_0 … f_n by the sum over true positives and positives left out, in 40 digits."""
    return _curve(tuple(sorted(map(float, p), reverse=True)), beta, formula, zero_division)


@cache  # several tests ask about the same probabilities
def _curve(falling, beta, formula, zero_division):
    formula = formula or fbeta(beta)
    n = len(falling)
    p = list(map(mpmath.mpf, falling))
    after = [[mpmath.mpf(1)]]
    for v in reversed(p):
        after.append(one_more_label(after[-1], v))
    inside = [mpmath.mpf(1)]
    f = []
    for k in range(n + 1):
        outside = after[n - k]
        f.append(
            mpmath.fsum(
                inside[t] * outside[r] * value(formula, t, k, t + r, n, zero_division)
                for t in range(k + 1)
                for r in range(n - k + 1)
                if inside[t] and outside[r]
            )
        )
        inside = one_more_label(inside, p[k]) if k < n else inside
    return tuple(f)


def best_k(curve):
    """The smallest k whose f is the largest, to 50 digits."""
    top = max(curve) * (1 - mpmath.mpf("1e-50"))
    return next(k for k, f in enumerate(curve) if f >= top)


def one_more_label(counts, p):
    """P(S = s) with one more independent label of probability p."""
    longer = [c * (1 - p) for c in counts] + [mpmath.mpf(0)]
    for i, c in enumerate(counts):
        longer[i + 1] += c * p
    return longer


def operating_point(p, selected):
    """Return E[T/k] and E[T/S] of a set, 0 where 0/0, from the distributions of its counts."""
    p, selected = np.asarray(p, dtype=float), np.asarray(selected, dtype=bool)
    counts = []
    for part in (p[selected], p[~selected]):
        mass = np.ones(1)
        for v in part:
            mass = np.append(mass, 0.0) * (1 - v) + np.append(0.0, mass) * v
        counts.append(mass)
    t, r = np.arange(counts[0].size)[:, None], np.arange(counts[1].size)
    recall = counts[0] @ (t / np.maximum(t + r, 1)) @ counts[1]
    return p[selected].sum() / max(selected.sum(), 1), recall


def all_label_vectors(n):
    """The 2ⁿ label vectors, and so also the 2ⁿ sets that could be predicted."""
    return np.array(list(itertools.product((0, 1), repeat=n)))


def every_set(states, mass, beta=1.0, zero_division=0.0):
    """Mean and standard deviation of F for each of the 2ⁿ sets, under any joint distribution."""
    sets, b2 = all_label_vectors(states.shape[1]), beta**2
    x = sets.sum(axis=1)[:, None] + b2 * states.sum(axis=1)
    f = np.where(x > 0, (1 + b2) * (sets @ states.T) / np.where(x > 0, x, 1), zero_division)
    mean = f @ mass
    return mean, np.sqrt((f - mean[:, None]) ** 2 @ mass)


def best_cut(y, scores, beta=1.0):
    """The highest F of "at least t" over all t, the rows counted anew at each."""
    chosen, positive = scores[:, None] >= scores, np.asarray(y) == 1
    hits, b2 = (chosen & positive[:, None]).sum(axis=0), beta**2
    return ((1 + b2) * hits / (chosen.sum(axis=0) + b2 * positive.sum())).max()


def joint_parameters(states, mass):
    """P(y_i = 1, S = s), n × n, and P(S = 0)."""
    counts = states.sum(axis=1)
    n = states.shape[1]
    P = np.array([(states * mass[:, None])[counts == s].sum(axis=0) for s in range(1, n + 1)]).T
    return P, mass[counts == 0].sum()


def families(seed=0):
    """Small sets on which approximate methods fail."""
    rng = np.random.default_rng(seed)
    return {
        "beta(.5,5) n=10": rng.beta(0.5, 5, 10),
        "beta(.5,5) n=30": rng.beta(0.5, 5, 30),
        "beta(.1,5) n=30": rng.beta(0.1, 5, 30),
        "rare": rng.dirichlet(np.ones(40)) * 0.2,
        "one and a tail": np.r_[0.9, np.full(35, 0.01)],
        "all equal": np.full(30, 0.3),
        "tiny": rng.random(30) * 1e-6,
        "tiny tail": rng.random(20) * 1e-100,
        "zeros and ones": np.r_[np.zeros(5), 1e-12, 0.5, 0.5, 1 - 1e-12, np.ones(4)],
        "near one": 1 - rng.random(30) * 1e-12,
        "uniform": rng.random(45),
    }


BETAS = [0.1, 0.5, 1.0, 2.0, np.pi, 10.0]


def values_of_runs(sizes, values, count, coefficients):
    """E of a ratio for the top k of runs of equal items, to 30 digits and more.

    1/x is the integral of e^{-ux}; labels are independent, so that the expectation of a product is
    the product of expectations.
    """
    with mpmath.workdps(45):
        c, b_in, b_out, s0, s1 = map(mpmath.mpf, coefficients)
        p, n = [mpmath.mpf(each) for each in values], [int(each) for each in count]
        x = sum(sizes) / len(sizes) + max(b_in, b_out) * mpmath.fdot(p, n) + s1
        rule = GaussLegendre(mpmath.mp).calc_nodes(5, mpmath.mp.prec)
        found = [mpmath.mpf(0) for _ in sizes]
        for start, stop in itertools.pairwise([0, 1, 4, 12, 30, 70]):
            for t, weight in rule:
                u = (start + (stop - start) * (t + 1) / 2) / x
                w_in, w_out = 1 - mpmath.exp(-b_in * u), 1 - mpmath.exp(-b_out * u)
                log_q = sum(m * mpmath.log(1 - each * w_out) for each, m in zip(p, n, strict=True))
                a, taken, i = s0, 0, 0
                for j, k in enumerate(sizes):
                    while taken < k:
                        log_q += n[i] * mpmath.log((1 - p[i] * w_in) / (1 - p[i] * w_out))
                        a += n[i] * c * p[i] * (1 - w_in) / (1 - p[i] * w_in)
                        taken, i = taken + n[i], i + 1
                    assert taken == k
                    found[j] += (
                        weight * (stop - start) / 2 / x * mpmath.exp(log_q - u * (k + s1)) * a
                    )
        return found


@cache
def near_sets_of_many(coefficients, kind, seed):
    """Return 10⁸ items in runs, forty items near the best cut among them, and the best k and its f.

    The sets that end between two of the forty differ in the seventeenth digit of f or so.
    """
    rng = np.random.default_rng(seed)
    a, b, step = {"likely": (0.3, 0.5, 1e-8), "rare": (0.3, 4.0, 1e-7)}[kind]
    values = np.sort(rng.beta(a, b, 30))[::-1]
    count = rng.integers(1, 10**7, 30).astype(float)
    k, found = np.cumsum(count), np.cumsum(count * values)
    c, b_in, b_out, _, _ = coefficients
    f = c * found / (k + b_in * found + b_out * (found[-1] - found))
    top = int(np.argmax(f))
    cut = f[top] / (c - (b_in - b_out) * f[top])  # one more item like this changes hardly anything
    near = cut * (1 + step * (np.arange(40.0) - 20 + rng.random(40)))[::-1]
    values = np.concatenate([values[: top + 1], near, values[top + 1 :]])
    assert (np.diff(values) < 0).all()
    count = np.concatenate([count[: top + 1], np.ones(40), count[top + 1 :]])
    sizes = np.cumsum(count)[top : top + 41].astype(int).tolist()
    truth = values_of_runs(sizes, values, count, coefficients)
    best = max(range(41), key=truth.__getitem__)
    assert 0 < best < 40
    assert min(truth[best] - truth[best - 1], truth[best] - truth[best + 1]) < 1e-14
    return values, count, sizes[best], float(truth[best])
