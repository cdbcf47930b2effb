"""What is known without data: Lemma 2, Theorem 3, and a mixture of Gaussians with its best F.

Numbers of lemmas, theorems and equations are those of Ye, Chai, Lee and Chieu, "Optimizing
F-Measures: A Tale of Two Approaches", ICML 2012.
"""

from argmaxf.theory.bounds import Bound, deviation_bound, regret_bound, sample_size
from argmaxf.theory.mixture import GaussianMixture, Optimum, mean_kl

__all__ = [
    "Bound",
    "GaussianMixture",
    "Optimum",
    "deviation_bound",
    "mean_kl",
    "regret_bound",
    "sample_size",
]
