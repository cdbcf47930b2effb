"""What the answers look like: matplotlib Displays that hold arrays, and then draw them.

Each is made by `from_predictions` or `from_estimator`, which draw at once, and drawn again with
`plot(ax=...)`. matplotlib is imported when something is drawn.
"""

from argmaxf.displays.empirical import (
    EmpiricalFDisplay,
    MethodComparisonDisplay,
    ReliabilityDisplay,
)
from argmaxf.displays.expected import (
    BetaDisplay,
    ExpectedFDisplay,
    PriorSensitivityDisplay,
    WorstCaseDisplay,
)
from argmaxf.displays.monitoring import MonitorDisplay

__all__ = [
    "BetaDisplay",
    "EmpiricalFDisplay",
    "ExpectedFDisplay",
    "MethodComparisonDisplay",
    "MonitorDisplay",
    "PriorSensitivityDisplay",
    "ReliabilityDisplay",
    "WorstCaseDisplay",
]
