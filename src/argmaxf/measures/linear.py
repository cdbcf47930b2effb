r"""The measures that are linear in true positives once k and S are known, MCC among them.

    value = a(k, S) T + b(k, S)

Their expectation needs no more of the labels than E[T; S = s], how many true positives there are
where s labels are positive, for the few s that are likely (`expected/counts/`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from argmaxf.measures.base import Measure, divided


class Linear(Measure):
    """A measure whose `fraction` is linear in tp once k and s are known, as that of MCC is.

    Beyond that the value must fall as k grows at the same T and S, where it is not 0/0; be smooth
    in S between 0 and n; and be 0/0, if at all, for all T of a k and S at once. And no top set that
    parts a run of equal items may be better than both that do not:

    - Along a run f is, but for a constant, L(k) h(k) with a line L: h = 1 for balanced accuracy,
      1/√k for Fowlkes-Mallows, 1/√(k (n - k)) for MCC. The slope has the sign of a line in k,
      L(n) k - L(0) (n - k) for MCC, which does not go from + to - unless L < 0 at both ends, and so
      always.
    - For kappa the slope is Σ_S P(S) 2 n w(S) / d(k, S)², d the denominator, w = S B - (n - S) A,
      A = Σ (π_i - π) over the items above the run, B = Σ (π - π_i) over those below, where π_i is
      P(y_i = 1 | S). As k grows, larger S weigh more. And B/A grows with S: π_i - π is
      (o_i - o) e(S - 1) / e_all(S), with odds o and symmetric polynomials of them, e that of all
      but the two; the ratio of an e without a low and one without a high item grows. So w goes from
      - to +, and so does the slope.
    """

    def parts(
        self, k: Any, s: Any, n: Any, zero_division: float, *, by_false: bool = False
    ) -> tuple[Any, Any]:
        """Return a and b of a T + b, or of a F + b with F = k - T false positives, for arrays.

        0/0 is a = 0 and b = `zero_division`. Where nearly all are positive, F is the small number.
        """
        tp = np.stack([0 * k, 0 * k + 1, k] if by_false else [0 * k, 0 * k + 1])
        numerator, denominator = self.fraction(tp, k, s, n)
        slope = numerator[0] - numerator[1] if by_false else numerator[1] - numerator[0]
        start = numerator[2] if by_false else numerator[0]
        return divided(slope, denominator, 0.0), divided(start, denominator, zero_division)
