r"""The measures that are linear in true positives once k and S are known, MCC among them.

    value = a(k, S) T + b(k, S)

Their expectation needs no more of the labels than E[T; S = s], how many true positives there are
where s labels are positive, for the few s that are likely (`expected/counts/`).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from argmaxf.measures.base import Measure, divided


class Linear(Measure):
    """A member of the family; its `fraction` is linear in tp, and says everything.

    Beyond that the value must fall as k grows at the same T and S, where it is not 0/0; be smooth
    in S between 0 and n; and be 0/0, if at all, for all T of a k and S at once.
    """

    # Whether no top set that parts a run of equal items is better than both that do not. Along the
    # run f is, but for a constant, L(k) h(k) with a line L ≥ 0: h = 1 for balanced accuracy, 1/√k
    # for Fowlkes-Mallows, 1/√(k (n - k)) for MCC. The slope has the sign of a line in k, L(n) k -
    # L(0) (n - k) for MCC, which does not go from + to - unless L < 0 at both ends, and so always.
    peaks_between_levels: ClassVar[bool] = False

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
