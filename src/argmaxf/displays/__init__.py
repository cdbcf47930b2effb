"""What the answers look like: matplotlib Displays that hold arrays, and then draw them.

Each is made by `from_predictions` or `from_estimator`, which draw at once, and drawn again with
`plot(ax=...)`. matplotlib is imported when something is drawn.
"""

from argmaxf.displays.empirical import EmpiricalFDisplay, ReliabilityDisplay
from argmaxf.displays.expected import BetaDisplay, ExpectedFDisplay
from argmaxf.displays.methods import MethodComparisonDisplay
from argmaxf.displays.sensitivity import PriorSensitivityDisplay, WorstCaseDisplay

__all__ = [
    "BetaDisplay",
    "EmpiricalFDisplay",
    "ExpectedFDisplay",
    "MethodComparisonDisplay",
    "PriorSensitivityDisplay",
    "ReliabilityDisplay",
    "WorstCaseDisplay",
]
