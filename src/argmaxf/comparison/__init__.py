"""Which method for this data: methods, held-out scores, the contest, the choice and its words.

`compare` and `AutoFClassifier` are its two doors.
"""

from argmaxf.comparison.auto import AutoFClassifier
from argmaxf.comparison.compare import compare
from argmaxf.comparison.methods import METHODS, Method
from argmaxf.comparison.result import Comparison, Evidence, Standing
from argmaxf.comparison.vote import VoteFClassifier

__all__ = [
    "METHODS",
    "AutoFClassifier",
    "Comparison",
    "Evidence",
    "Method",
    "Standing",
    "VoteFClassifier",
    "compare",
]
