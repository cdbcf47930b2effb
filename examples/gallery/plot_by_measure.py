"""
What each measure selects
=========================

The same probabilities with another measure give another set. Each curve is the expected value of
the most probable k rows, relative to its maximum; the dots are the best sets.
"""

import matplotlib.pyplot as plt
import numpy as np

from argmaxf import expected_f_curve, maximize_expected_f
from argmaxf.measures import as_measure

p = np.random.default_rng(0).beta(0.5, 5, 2000)
figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
for name in ("kappa", "mcc", "fbeta", "jaccard", "balanced_accuracy", "fowlkes_mallows"):
    curve, best = expected_f_curve(p, measure=name), maximize_expected_f(p, measure=name)
    (line,) = ax.plot(curve / best.expected, label=f"{as_measure(name)}: k = {best.k:,}")
    ax.plot(best.k, 1.0, "o", color=line.get_color())
ax.set(xlabel="items selected, most probable first", ylabel="relative value", ylim=(0.6, 1.01))
legend = ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
