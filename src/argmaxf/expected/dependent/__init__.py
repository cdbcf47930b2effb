"""Labels that depend on each other: the general maximizer, and its three sources of dependence."""

from argmaxf.expected.dependent.general import JointDecision
from argmaxf.expected.dependent.maximize import (
    maximize_expected_f_from_joint,
    maximize_expected_f_from_mixture,
    maximize_expected_f_from_samples,
)

__all__ = [
    "JointDecision",
    "maximize_expected_f_from_joint",
    "maximize_expected_f_from_mixture",
    "maximize_expected_f_from_samples",
]
