"""Independent judges of expected values: the definition, 40-digit arithmetic, and the families."""

import itertools

import mpmath
import numpy as np

mpmath.mp.dps = 70  # so that sets whose values differ in the 48th digit are still told apart


def definition(p, selected, beta=1.0, *, jaccard=False, zero_division=0.0):
    """Mean and standard deviation of F over all 2ⁿ label vectors."""
    p = [mpmath.mpf(float(v)) for v in p]
    k = sum(map(bool, selected))
    b2 = mpmath.mpf(beta) ** 2
    states = []
    for y in itertools.product((0, 1), repeat=len(p)):
        mass = mpmath.fprod(pi if yi else 1 - pi for pi, yi in zip(p, y, strict=True))
        true, positives = sum(yi for yi, s in zip(y, selected, strict=True) if s), sum(y)
        if k + positives == 0:
            value = mpmath.mpf(zero_division)
        elif jaccard:
            value = mpmath.mpf(true) / (k + positives - true)
        else:
            value = (1 + b2) * true / (k + b2 * positives)
        states.append((mass, value))
    mean = mpmath.fsum(m * v for m, v in states)
    variance = mpmath.fsum(m * (v - mean) ** 2 for m, v in states)
    return mean, mpmath.sqrt(variance)


def curve_40_digits(p, beta=1.0, *, jaccard=False, zero_division=0.0):
    """f_0 … f_n by the sum over true positives and positives left out, in 40 digits."""
    p = [mpmath.mpf(float(v)) for v in sorted(p, reverse=True)]
    b2, n = mpmath.mpf(beta) ** 2, len(p)
    after = [[mpmath.mpf(1)]]
    for v in reversed(p):
        after.append(one_more_label(after[-1], v))
    inside = [mpmath.mpf(1)]
    f = [mpmath.mpf(zero_division) * after[n][0]]
    for k in range(1, n + 1):
        inside = one_more_label(inside, p[k - 1])
        outside = after[n - k]
        if jaccard:
            left = mpmath.fsum(m / (k + r) for r, m in enumerate(outside))
            f.append(mpmath.fsum(t * m for t, m in enumerate(inside)) * left)
            continue
        f.append(
            mpmath.fsum(
                inside[t] * outside[r] * (1 + b2) * t / (k + b2 * (t + r))
                for t in range(1, k + 1)
                for r in range(n - k + 1)
            )
        )
    return f


def one_more_label(counts, p):
    """P(S = s) with one more independent label of probability p."""
    longer = [c * (1 - p) for c in counts] + [mpmath.mpf(0)]
    for i, c in enumerate(counts):
        longer[i + 1] += c * p
    return longer


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
        "rare": rng.dirichlet(np.ones(50)) * 0.2,
        "one and a tail": np.r_[0.9, np.full(45, 0.01)],
        "all equal": np.full(40, 0.3),
        "tiny": rng.random(40) * 1e-6,
        "tiny tail": rng.random(20) * 1e-100,
        "zeros and ones": np.r_[np.zeros(5), 1e-12, 0.5, 0.5, 1 - 1e-12, np.ones(4)],
        "near one": 1 - rng.random(30) * 1e-12,
        "uniform": rng.random(60),
    }


BETAS = [0.1, 0.5, 1.0, 2.0, np.pi, 10.0]
