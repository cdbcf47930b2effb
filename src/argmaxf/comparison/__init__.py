"""Which method for this data: methods, held-out scores, the contest, the choice and its words.

`compare` and `AutoFClassifier` are its two doors.
"""

from argmaxf.comparison.auto import AutoFClassifier
from argmaxf.comparison.blend import BlendFClassifier
from argmaxf.comparison.compare import compare
from argmaxf.comparison.methods import METHODS, Method
from argmaxf.comparison.result import Comparison, Evidence, Standing

__all__ = [
    "METHODS",
    "AutoFClassifier",
    "BlendFClassifier",
    "Comparison",
    "Evidence",
    "Method",
    "Standing",
    "compare",
]
