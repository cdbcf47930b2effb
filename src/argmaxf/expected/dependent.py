r"""The general F maximizer: the best set for labels that depend on each other.

For any joint distribution, with P_is = P(y_i = 1, S = s), a set of k items has

    E[F] = Σ_{i in set} Δ_ik,    Δ_ik = (1+β²) Σ_s P_is / (k + β² s),

so the best set of size k is the k largest Δ_·k, worth f_k, and the best k wins (Dembczyński et
al. 2011). Writing 1/x = Σ_m ω_m e^{-u_m x} gives every model of dependence one form:

    Δ_ik = Σ_m B_im e^{-u_m k},    B ≥ 0, n × nodes,

and one optimizer. Δ_ik is convex in y(k) = 1 / (k + β² S_max), S_max being the most positives, and
so is V(k, t), the sum of the k largest Δ_·t, in y(t). Hence for a ≤ k ≤ b, with
λ = (y(a) - y(k)) / (y(a) - y(b)),

    f_k = V(k, k) ≤ (1-λ) V(k, a) + λ V(k, b):

two evaluations, n·nodes operations each, bound f at every k between them, by a chord whose error
is of second order. Cutting the ranges that the bound leaves open certifies the optimum after a few
dozen evaluations.

Ties. Of sizes whose f agree to 13 digits the smallest is taken, of items whose Δ do the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxf._base.arrays import Floats
from argmaxf._base.validation import (
    as_labels,
    as_probabilities,
    as_real_array,
    as_weights,
    first_bad_probability,
    ones_unless,
)
from argmaxf.expected.decision import Decision
from argmaxf.expected.joint_models import Draws, JointModel, JointParameters, Mixture
from argmaxf.expected.maximize import decide_each_row
from argmaxf.expected.threads import in_threads, threads_for
from argmaxf.problem import Problem

NUMBERS_HELD = 1 << 22  # numbers of B held at a time for a batch
ROUNDING = 1e-6  # parameters may miss adding up by this much: models in float32 do


@dataclass(frozen=True, eq=False, repr=False)
class JointDecision(Decision):
    """The set with the highest expected F under a joint model, and what dependence is worth.

    As `Decision`, with `expected` under the joint model, and:

    Attributes
    ----------
    threshold : float or ndarray
        The smallest selected contribution: an item is selected where its `contribution` is at
        least this, ties aside. Infinite if nothing is selected.
    std : float or ndarray
        Standard deviation of F under the joint model; NaN where the model leaves it open.
    std_bounds : tuple
        Between which numbers it lies for every distribution that fits the model.
    independent_expected : float or ndarray
        E[F], under the joint model, of the set that would be best if labels were independent with
        the same probabilities.
    contribution : ndarray or None
        What each item adds to E[F] in a set of k items (of one item, if nothing is selected).

    Examples
    --------
    >>> from argmaxf import maximize_expected_f_from_samples
    >>> draws = [[1, 0, 0], [1, 0, 0], [0, 1, 1]]
    >>> decision = maximize_expected_f_from_samples(draws)
    >>> decision.selected, round(decision.gain, 3)
    (array([ True, False, False]), 0.067)
    """

    std_bounds: Any = (np.nan, np.nan)
    independent_expected: Any = np.nan
    contribution: Any = None

    @property
    def gain(self) -> Any:
        """How much expected F is lost by taking labels for independent."""
        return self.expected - self.independent_expected


def maximize_expected_f_from_samples(
    samples: Any, *, beta: float = 1.0, weights: ArrayLike | None = None, zero_division: float = 0.0
) -> JointDecision:
    """Return the labels with the highest expected F over joint draws of all labels.

    Draws can be posterior samples, the answers of several annotators, or the output of a Gibbs
    sampler. The optimum is exact and certified for their empirical distribution.

    Parameters
    ----------
    samples : array-like or sparse matrix of shape (m, n)
        m draws of n labels: an m × n array of booleans or zeros and ones, or a SciPy sparse matrix.
    beta : float, default=1.0
        Weight of recall against precision; any real number between 1e-9 and 1e9.
    weights : array-like of shape (m,), optional
        One weight for each draw; equal by default.
    zero_division : float, default=0.0
        Value of F when nothing is positive and nothing is predicted.

    Returns
    -------
    JointDecision
        With `independent_expected`, what the answer for independent labels would be worth.

    Notes
    -----
    O(m n) time, about 50 operations for each entry (each stored entry of a sparse matrix). Draws
    are read in blocks: besides booleans it holds about 50 numbers for each label, whatever m is.
    Draws of another type are first converted to booleans, sparse ones to CSR.

    References
    ----------
    Dembczyński, Waegeman, Cheng & Hüllermeier, "An exact algorithm for F-measure maximization",
    NIPS 2011.

    Examples
    --------
    Two annotators see the first label alone, one sees the four others. Each label for itself, all
    five have the highest expected F; together, it is better to side with the two.

    >>> draws = [[1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [0, 1, 1, 1, 1]]
    >>> decision = maximize_expected_f_from_samples(draws)
    >>> decision.selected
    array([ True, False, False, False, False])
    >>> round(decision.expected, 4), round(decision.independent_expected, 4)
    (0.6667, 0.5185)
    """
    problem = Problem.of(beta, "fbeta", zero_division)
    draws = _as_draws(samples)
    m = draws.shape[0]
    weight = ones_unless(as_weights(weights, m, "weights"), m)
    return decide(Draws(draws, weight, problem)).only()


def maximize_expected_f_from_mixture(
    p: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    beta: float = 1.0,
    zero_division: float = 0.0,
) -> JointDecision:
    """Return the labels with the highest expected F under an ensemble of independent models.

    One of the models is right, with the probability that the weights give; under it labels are
    independent. Together they are not: averaging the probabilities first would lose that. The
    optimum is exact and certified.

    Parameters
    ----------
    p : array-like of shape (z, n)
        z × n probabilities: one row for each model of the ensemble.
    weights : array-like of shape (z,), optional
        One weight for each model; equal by default.
    beta : float, default=1.0
        Weight of recall against precision.
    zero_division : float, default=0.0
        Value of F when nothing is positive and nothing is predicted.

    Returns
    -------
    JointDecision
        With `independent_expected`, what the answer of the averaged probabilities would be worth.

    Notes
    -----
    O(z n) time, about 50 operations for each probability, and memory for about 50 numbers for each
    label.

    Examples
    --------
    >>> models = [[0.9, 0.8, 0.1, 0.1], [0.1, 0.1, 0.6, 0.1]]
    >>> decision = maximize_expected_f_from_mixture(models, weights=[2, 1])
    >>> decision.selected
    array([ True,  True, False, False])
    >>> round(decision.expected, 4), round(decision.std, 4)
    (0.6071, 0.4117)
    """
    problem = Problem.of(beta, "fbeta", zero_division)
    models = _as_models(p)
    weight = ones_unless(as_weights(weights, len(models), "weights"), len(models))
    return decide(Mixture(models, weight, problem)).only()


def maximize_expected_f_from_joint(
    P: ArrayLike, p0: ArrayLike, *, beta: float = 1.0, zero_division: float = 0.0
) -> JointDecision:
    """Return the labels with the highest expected F for any joint distribution.

    The n² + 1 parameters P(y_i = 1, S = s) and P(S = 0), S being the number of positives, are all
    that the expected F depends on. The optimum is exact and certified.

    Parameters
    ----------
    P : array-like of shape (n, s) or (instances, n, s)
        ``P[i, s-1]`` is the probability that label i is positive and s labels are in all. Columns
        beyond the largest possible s may be left out. A batch of instances has one more axis, in
        front.
    p0 : float or array-like of shape (instances,)
        The probability that no label is positive; one for each instance of a batch.
    beta : float, default=1.0
        Weight of recall against precision.
    zero_division : float, default=0.0
        Value of F when nothing is positive and nothing is predicted.

    Returns
    -------
    JointDecision
        The parameters do not determine the spread of F: `std` is NaN where they leave it open, and
        `std_bounds` says between which numbers it lies.

    Notes
    -----
    O(n²) time and memory, about 50 operations for each parameter: no n³ step.

    Parameters that no distribution has are refused. They have one if and only if none is negative,
    ``P[i, s-1] ≤ P(S = s) = Σ_i P[i, s-1] / s`` for all i and s, and p0 and the P(S = s) add up to
    1 (systematic sampling draws from it); 1e-6 is allowed for rounding.

    References
    ----------
    Dembczyński, Waegeman, Cheng & Hüllermeier, "An exact algorithm for F-measure maximization",
    NIPS 2011.

    Examples
    --------
    The first label alone, or the two others together, each with probability one half.

    >>> P = [[0.5, 0.0], [0.0, 0.5], [0.0, 0.5]]
    >>> decision = maximize_expected_f_from_joint(P, 0.0)
    >>> decision.selected
    array([ True,  True,  True])
    >>> round(decision.expected, 4)
    0.65
    """
    problem = Problem.of(beta, "fbeta", zero_division)
    joint, none = _as_joint(P, p0)
    one = joint.ndim == 2
    if one:
        joint, none = joint[None], none[None]
    _check_consistent(joint, none, one)
    decision = decide(JointParameters(joint, none, problem))
    return decision.only() if one else decision


def decide(model: JointModel) -> JointDecision:
    """Return the best set for each instance of a model, as many at a time as fit in memory."""
    from argmaxf.expected import dependent_kernels

    problem, (rows, n), u = model.problem, model.marginals.shape, model.nodes.u
    independent = decide_each_row(model.marginals, problem)
    guess, nothing = np.maximum(independent.k, 1), problem.zero_division * model.none
    k, threshold = np.empty(rows, np.int64), np.empty(rows)
    contribution, selected = np.empty((rows, n)), np.empty((rows, n), np.bool_)

    def work(part: slice) -> None:
        found = k[part], contribution[part], threshold[part], selected[part]
        given = model.matrix(part), u, model.shift, guess[part], nothing[part]
        dependent_kernels.decide_instances(*given, *found)

    at_once = max(1, NUMBERS_HELD // (n * u.size))
    for start in range(0, rows, at_once):
        block = min(at_once, rows - start)
        in_threads(work, np.arange(block + 1), threads_for(block * n * u.size), start)
    value = model.value(selected)
    std = np.where(value.high - value.low <= 1e-12, value.high, np.nan)
    return JointDecision(
        *(selected, k, threshold, value.mean, std, problem.beta, n),
        std_bounds=(value.low, value.high),
        independent_expected=model.value(independent.selected).mean,
        contribution=contribution,
    )


def _as_draws(samples: Any) -> Any:
    """Return draws as booleans, or as a sparse CSR matrix of zeros and ones."""
    draws = _as_csr(samples) if hasattr(samples, "tocsr") else as_labels("samples", samples)
    if draws.ndim != 2:
        raise ValueError(f"samples must have two dimensions, draws by labels, got {draws.ndim}")
    if 0 in draws.shape:
        raise ValueError(f"samples must hold at least one draw of one label, got {draws.shape}")
    return draws


def _as_csr(samples: Any) -> Any:
    draws = samples.tocsr()
    if not draws.has_canonical_format:  # an entry may be stored in parts
        draws = draws.copy()
        draws.sum_duplicates()
    as_labels("samples", draws.data)
    return draws


def _as_models(given: ArrayLike) -> Floats:
    p = as_probabilities("p", given)
    if p.ndim != 2:
        raise ValueError(f"p must have two dimensions, models by labels, got {p.ndim}")
    if 0 in p.shape:
        raise ValueError(f"p must hold at least one model of one label, got {p.shape}")
    return p.astype(np.float64, copy=False)


def _as_joint(P: ArrayLike, p0: ArrayLike) -> tuple[Floats, NDArray[Any]]:
    """Return the parameters as arrays of fitting shapes, every one of them a probability."""
    joint = as_real_array("P", P)
    if joint.ndim not in (2, 3):
        raise ValueError(f"P must have two dimensions, or three for a batch, got {joint.ndim}")
    n, counts = joint.shape[-2:]
    if not (n and counts):
        raise ValueError(f"P must hold at least one label and one column, got {joint.shape}")
    if counts > n:
        raise ValueError(f"P must have one row per label and at most {n} columns, got {counts}")
    if joint.size and not (joint.min() >= -ROUNDING and joint.max() <= 1.0 + ROUNDING):
        raise first_bad_probability("P", joint)
    none = as_real_array("p0", p0)
    if none.shape != joint.shape[:-2]:
        raise ValueError(f"p0 must have shape {joint.shape[:-2]} to go with P, got {none.shape}")
    if not ((none >= -ROUNDING) & (none <= 1.0 + ROUNDING)).all():
        raise first_bad_probability("p0", none)
    joint = joint.astype(np.float64, copy=False)
    if joint.size and joint.min() < 0.0:  # by rounding
        joint = np.maximum(joint, 0.0)
    return joint, none.astype(np.float64).clip(0.0, 1.0)


def _check_consistent(joint: Floats, none: Floats, one: bool) -> None:
    """Refuse parameters that no joint distribution has."""
    mass = joint.sum(axis=1) / np.arange(1.0, joint.shape[2] + 1.0)  # P(S = s)
    worst = joint.max(axis=1) - mass
    if worst.size and worst.max() > ROUNDING:
        r, s = divmod(int(np.argmax(worst)), worst.shape[1])
        i = int(np.argmax(joint[r, :, s]))
        place = (i, s) if one else (r, i, s)
        raise ValueError(
            f"P(y_i = 1, S = s) must not exceed P(S = s), the sum of P's column over s; got "
            f"{float(joint[r, i, s])!r} at position {place} against {float(mass[r, s]):.6g}"
        )
    total = none + mass.sum(axis=1)
    off = np.abs(total - 1.0)
    if off.size and off.max() > ROUNDING:
        r = int(np.argmax(off))
        where = "" if one else f" in instance {r}"
        raise ValueError(
            "p0 and the P(S = s), the sum of P's column over s, must add up to 1, "
            f"got {total[r]:.6g}{where}"
        )
