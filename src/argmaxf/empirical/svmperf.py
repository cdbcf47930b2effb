"""SVMperf (Joachims 2005): the structural SVM whose loss is 1 - F_β, with a certified optimum.

    min_w  ½ ‖w‖² + C n ξ    so that, for every labelling,    w · g ≥ 1 - F_β(labelling) - ξ

where w · g = (1/n) Σ_wrong ±w·x is the margin of the true labels over a labelling. With the error
rate in place of 1 - F_β this is the ordinary linear SVM (hinge loss), which fixes the scale of C.

There are 2ⁿ constraints. A cutting plane is one of them; the most violated is added until the lower
bound that the planes give meets the best point found. Plain cutting planes zigzag: each round first
searches the line from the best point to the planes' optimum (Franc and Sonnenburg, JMLR 10, 2009),
which takes several times fewer planes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize_scalar

from argmaxf._base.validation import check_beta, check_count, check_positive, ones_unless
from argmaxf.empirical.soft_f import LinearModel, Scores, Vector
from argmaxf.measures import FBeta


@dataclass(frozen=True, repr=False)
class MarginF(LinearModel):
    """A linear score trained by SVMperf; nothing has an objective below `objective - gap`."""

    objective: float = np.nan
    gap: float = np.nan


def fit_margin_f(
    X: Any,
    y: NDArray[Any],
    *,
    beta: float = 1.0,
    C: float = 1.0,
    fit_intercept: bool = True,
    sample_weight: NDArray[Any] | None = None,
    tol: float = 1e-3,
    max_iter: int = 5000,
    verbose: bool = False,
) -> MarginF:
    """Return the linear score that maximizes the margin of F_β, to a proven gap.

    The options are those of `MarginFClassifier`. A plane costs two products with X, some sorts, and
    a quadratic program over the planes in use, a few hundred at most in practice.
    """
    weight = np.asarray(ones_unless(sample_weight, len(y)), np.float64)
    scores = Scores(X, fit_intercept)
    best, gap, n_iter = lay_planes(
        scores,
        SeparationOracle(np.asarray(y, bool), weight, beta=check_beta(beta)),
        budget=check_positive("C", C) * float(weight.sum()),
        tol=check_positive("tol", tol),
        max_iter=check_count("max_iter", max_iter),
        verbose=verbose,
    )
    return MarginF(
        *scores.split(best.w),
        n_iter=n_iter,
        converged=gap <= tol * best.objective,
        objective=best.objective,
        gap=gap,
    )


@dataclass(frozen=True)
class Point:
    """A w with its scores, the labelling it violates most, and ½‖w‖² + C n ξ there."""

    w: Vector
    score: Vector
    violation: Violation
    objective: float


def lay_planes(
    scores: Scores,
    oracle: Callable[[Vector], Violation],
    *,
    budget: float,
    tol: float,
    max_iter: int,
    verbose: bool = False,
) -> tuple[Point, float, int]:
    """Minimize ½‖w‖² + budget · max(0, largest violation), for any exact oracle.

    Returns the best point, its distance from the planes' lower bound, and how many were laid.
    """

    def at(w: Vector, score: Vector) -> Point:
        violation = oracle(score)
        slack = max(0.0, violation.over(score))
        return Point(w, score, violation, 0.5 * float(w @ w) + budget * slack)

    best = last = at(np.zeros(scores.size), np.zeros(scores.X.shape[0]))
    planes, lower, n_iter = Planes(budget), 0.0, 0
    while best.objective - lower > tol * best.objective and n_iter < max_iter:
        n_iter += 1
        planes.add(scores.pull(last.violation.residual), last.violation.loss)
        w, bound = planes.minimum()
        lower = max(lower, bound)
        best, last = _look_along(best, w, scores(w), at)
        if verbose and n_iter % 50 == 0:
            gap = (best.objective - lower) / best.objective
            print(f"{n_iter} planes: objective {best.objective:.6g}, gap {gap:.2%}", flush=True)
    return best, best.objective - lower, n_iter


def _look_along(
    best: Point, w: Vector, score: Vector, at: Callable[..., Point]
) -> tuple[Point, Point]:
    """Return the best point on the way to `w`, and one a little ahead of it for a new plane."""

    def on_the_way(start: Point, step: float) -> Point:
        return at(start.w + step * (w - start.w), start.score + step * (score - start.score))

    step = minimize_scalar(
        lambda step: on_the_way(best, step).objective,
        bounds=(0.0, 1.0),
        method="bounded",
        options={"maxiter": 10, "xatol": 1e-3},  # each step costs a sort, no product with X
    ).x
    best = min(best, on_the_way(best, step), key=lambda point: point.objective)
    ahead = on_the_way(best, 0.1)
    return min(best, ahead, key=lambda point: point.objective), ahead


@dataclass
class Planes:
    """The planes in use, and min_w ½‖w‖² + budget · max(0, max_k loss_k - w·g_k) over them."""

    budget: float
    planes: list[Vector] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    idle: list[int] = field(default_factory=list)
    gram: Vector = field(default_factory=lambda: np.zeros((0, 0)))

    def add(self, plane: Vector, loss: float) -> None:
        """Take in one more plane, unless it is there already or lies below one that is."""
        products = np.array([plane @ other for other in [*self.planes, plane]])
        distance = np.diag(self.gram) + products[-1] - 2 * products[:-1]
        same = distance <= 1e-14 * products[-1]  # they differ by rounding only
        if (same & (np.array(self.losses) >= loss)).any():
            return
        self.planes.append(plane)
        self.losses.append(loss)
        self.idle.append(0)
        self.gram = np.block([[self.gram, products[:-1, None]], [products]])

    def minimum(self) -> tuple[Vector, float]:
        """Return the minimizing w, and the dual value there, a lower bound; drop idle planes."""
        shares = solve_simplex_qp(self.budget * self.gram, np.array(self.losses))
        a = self.budget * shares
        w = np.asarray(sum(map(np.multiply, a, self.planes)))
        bound = float(a @ self.losses) - 0.5 * float(w @ w)
        little = shares < 1e-3 / len(shares)
        self.idle = [count + 1 if low else 0 for count, low in zip(self.idle, little, strict=True)]
        used = np.flatnonzero(np.array(self.idle) <= 20)
        if len(used) < len(shares):  # some have had next to no weight for 20 rounds
            for name in ("planes", "losses", "idle"):
                setattr(self, name, [getattr(self, name)[k] for k in used])
            self.gram = self.gram[np.ix_(used, used)]
        return w, bound


def solve_simplex_qp(gram: Vector, gain: Vector) -> Vector:
    """Return the a ≥ 0 with Σ a ≤ 1 that maximizes gain·a - ½ aᵀ gram a; feasible exactly.

    Clarabel needs no strictly convex problem: planes may be linearly dependent.
    """
    try:
        import clarabel
    except ImportError:
        message = "MarginFClassifier needs clarabel: pip install 'argmaxf[svmperf]'"
        raise ImportError(message, name="clarabel") from None

    m = len(gain)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(gram)),
        -gain,
        sparse.csc_matrix(np.vstack([-np.eye(m), np.ones(m)])),
        np.append(np.zeros(m), 1.0),
        [clarabel.NonnegativeConeT(m + 1)],
        settings,
    ).solve()
    a: Vector = np.array(solution.x)
    if not np.isfinite(a).all():
        raise RuntimeError(f"the quadratic program over {m} planes failed: {solution.status}")
    a = np.maximum(a, 0.0)
    return np.asarray(a / max(1.0, a.sum()))


@dataclass(frozen=True)
class Violation:
    """A labelling: its loss 1 - F, and `residual`, by which `residual @ score` is its margin."""

    loss: float
    residual: Vector

    def over(self, score: Vector) -> float:
        """Return by how much the scores fail to rule the labelling out."""
        return self.loss - float(self.residual @ score)


class SeparationOracle:
    """The labelling with the largest 1 - F_β(labelling) - margin of the true labels over it, exact.

    F depends on a labelling only through A, the mass of positives it keeps, and B, the mass of
    negatives it takes, and the best keeps and takes those with the highest scores (Joachims 2005,
    section 4). For fixed A the rest is concave in B, so a bisection finds the best B, for every A
    at once: O(n log n).

    A weight is a number of copies of its item, not split where all weights are whole numbers.
    """

    def __init__(self, y: NDArray[np.bool_], weight: Vector, *, beta: float = 1.0) -> None:
        self.positives, self.negatives = np.flatnonzero(y), np.flatnonzero(~y)
        self.weight = weight
        self.total = float(weight.sum())
        self.beta = beta
        self.measure = FBeta(beta)
        self.whole = bool((weight == np.rint(weight)).all())

    def __call__(self, score: Vector) -> Violation:
        """Return the labelling that maximizes loss minus margin."""
        kept, taken = (
            _Ranked(part, score, self.weight) for part in (self.positives, self.negatives)
        )
        take = self._best_take(kept.mass, taken)
        tries = np.array([np.floor(take), np.ceil(take)] if self.whole else [take])
        loss = 1.0 - self.measure.value(kept.mass, kept.mass + tries, kept.mass[-1])
        missed = kept.gain[-1] - kept.gain
        value = loss + (np.interp(tries, taken.mass, taken.gain) - missed) / self.total
        best = np.unravel_index(np.argmax(value), value.shape)
        residual = np.zeros(len(score))
        residual[kept.items] = kept.weight * (1.0 - kept.share(kept.mass[best[1]]))
        residual[taken.items] = -taken.weight * taken.share(tries[best])
        return Violation(float(loss[best]), residual / self.total)

    def _best_take(self, kept: Vector, taken: _Ranked) -> Vector:
        """Return the B with the highest value for each A, where B may split an item.

        In B the value has slope (1+β²) A / (A + B + β² S)² + score / n, which falls as B grows.
        """
        if not len(taken.items):
            return np.zeros(len(kept))
        b2, size = self.beta**2, kept + self.beta**2 * kept[-1]
        pull = (1.0 + b2) * kept * self.total
        started, end = np.zeros(len(kept), np.intp), np.full(len(kept), len(taken.items))
        while (unknown := started < end).any():
            middle = (started + end) // 2
            item = np.minimum(middle, len(taken.items) - 1)
            worth = pull + taken.score[item] * (size + taken.mass[item]) ** 2 > 0
            started = np.where(unknown & worth, middle + 1, started)
            end = np.where(unknown & ~worth, middle, end)
        last = np.maximum(started - 1, 0)
        falls = taken.score[last] < 0
        fall = np.where(falls, -taken.score[last], 1.0)
        zero = np.where(falls, np.sqrt(pull) / np.sqrt(fall) - size, np.inf)
        inside = np.clip(zero, taken.mass[last], taken.mass[last + 1])
        return np.where(started > 0, inside, 0.0)


class _Ranked:
    """One class's items by falling score: the mass and the summed score of the first so many."""

    def __init__(self, items: NDArray[np.intp], score: Vector, weight: Vector) -> None:
        self.items = items[np.argsort(-score[items], kind="stable")]
        self.score, self.weight = score[self.items], weight[self.items]
        self.mass = np.concatenate([[0.0], np.cumsum(self.weight)])
        self.gain = np.concatenate([[0.0], np.cumsum(self.weight * self.score)])

    def share(self, mass: float) -> Vector:
        """Return how much of each item belongs to the top `mass`: 1, then a part, then 0."""
        return np.clip((mass - self.mass[:-1]) / self.weight, 0.0, 1.0)
