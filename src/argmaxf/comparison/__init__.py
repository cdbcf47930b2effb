"""Which method to use on a data set: `compare`, and `AutoFClassifier`, which uses it."""

from argmaxf.comparison.auto_f import AutoFClassifier, compare
from argmaxf.comparison.methods import METHODS, Method
from argmaxf.comparison.result import Comparison, Evidence, Standing

__all__ = [
    "METHODS",
    "AutoFClassifier",
    "Comparison",
    "Evidence",
    "Method",
    "Standing",
    "compare",
]
