"""How the short rule of expected/quadrature.py was found: python tools/short_rule.py prints it.

Σ ω e^{-ux} is fitted to 1/x in relative error on [1, RATIO], by Gauss-Newton steps in log u and
log ω on the residual at Chebyshev points of log x. Starting from the trapezoid rule, one node after
the other is merged into its neighbour and the rest fitted anew, until 24 are left.
"""

from __future__ import annotations

import numpy as np

from argmaxf.expected.quadrature import RATIO, reciprocal_nodes

POINTS = 600
TOLERANCE = 6e-15
CUTS = 10.0 ** np.arange(-15, -5)  # how many directions of the ill-conditioned fit to keep

x = np.exp((np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS) + 1) / 2 * np.log(RATIO))


def terms(log_u, log_weight):
    """x ω e^{-ux} for each x and node: rows that should add up to one."""
    return x[:, None] * np.exp(log_weight - np.outer(x, np.exp(log_u)))


def step(log_u, log_weight):
    """One Gauss-Newton step that lowers the residual, or None."""
    each = terms(log_u, log_weight)
    residual = each.sum(axis=1) - 1.0
    jacobian = np.hstack([-each * np.outer(x, np.exp(log_u)), each])
    left, size, right = np.linalg.svd(jacobian, full_matrices=False)
    for cut in CUTS:
        kept = size > cut * size[0]
        move = -right[kept].T @ (left[:, kept].T @ residual / size[kept])
        move *= min(1.0, 0.5 / np.abs(move).max())
        after = log_u + move[: log_u.size], log_weight + move[log_u.size :]
        if np.linalg.norm(terms(*after).sum(axis=1) - 1.0) < 0.999 * np.linalg.norm(residual):
            return after
    return None


def fitted(nodes):
    """Fit until the error is at the level of rounding; return the nodes and their error."""
    for _ in range(60):
        error = np.abs(terms(*nodes).sum(axis=1) - 1.0).max()
        after = None if error < 1.5e-15 else step(*nodes)
        if after is None:
            break
        nodes = after
    return nodes, np.abs(terms(*nodes).sum(axis=1) - 1.0).max()


def without(nodes, gone):
    """Merge one node into its nearest neighbour."""
    log_u, log_weight = (np.delete(part, gone) for part in nodes)
    near = np.argmin(np.abs(log_u - nodes[0][gone]))
    log_weight[near] = np.logaddexp(log_weight[near], nodes[1][gone])
    return log_u, log_weight


def shorter(nodes):
    """Return a rule with one node less that is still exact to rounding, or None."""
    least_missed = np.argsort(terms(*nodes).max(axis=0))[:6]
    for gone in [*least_missed, *range(0, nodes[0].size, 3)]:
        rule, error = fitted(without(nodes, gone))
        if error < TOLERANCE:
            order = np.argsort(rule[0])
            return rule[0][order], rule[1][order]
    return None


def main(size=24):
    u, weight = reciprocal_nodes(1.0, 1.001 * RATIO)  # the trapezoid rule
    rule, _ = fitted((np.log(u), np.log(weight)))
    while rule[0].size > size:
        rule = shorter(rule)
        print(f"# {rule[0].size} nodes", flush=True)
    for part in rule:
        print(np.exp(part).tolist())


if __name__ == "__main__":
    main()
