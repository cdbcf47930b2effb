# The public surface, one line for each name: type checkers and editors read it here, and
# __init__.py imports from here what is asked for. To add a name, add its line.

from argmaxf import displays as displays
from argmaxf import measures as measures
from argmaxf import objectives as objectives
from argmaxf import theory as theory
from argmaxf import torch as torch
from argmaxf.comparison.auto_f import AutoFClassifier as AutoFClassifier
from argmaxf.comparison.auto_f import compare as compare
from argmaxf.comparison.result import Comparison as Comparison
from argmaxf.empirical.guarantees import Guarantee as Guarantee
from argmaxf.empirical.guarantees import GuaranteeError as GuaranteeError
from argmaxf.empirical.interval import f_interval as f_interval
from argmaxf.empirical.labelled_sketch import LabelledSketch as LabelledSketch
from argmaxf.empirical.threshold import Curve as Curve
from argmaxf.empirical.threshold import Threshold as Threshold
from argmaxf.empirical.threshold import empirical_f_curve as empirical_f_curve
from argmaxf.empirical.threshold import maximize_empirical_f as maximize_empirical_f
from argmaxf.estimators.cost_sensitive_f import CostSensitiveFClassifier as CostSensitiveFClassifier
from argmaxf.estimators.expected_f import BlendFClassifier as BlendFClassifier
from argmaxf.estimators.expected_f import ExpectedFClassifier as ExpectedFClassifier
from argmaxf.estimators.joint_f import JointFClassifier as JointFClassifier
from argmaxf.estimators.linear_f import MarginFClassifier as MarginFClassifier
from argmaxf.estimators.linear_f import SoftFClassifier as SoftFClassifier
from argmaxf.estimators.threshold_f import ThresholdFClassifier as ThresholdFClassifier
from argmaxf.expected.chance import ChanceGuarantee as ChanceGuarantee
from argmaxf.expected.decision import Decision as Decision
from argmaxf.expected.decision import ExpectedF as ExpectedF
from argmaxf.expected.dependent import JointDecision as JointDecision
from argmaxf.expected.dependent import (
    maximize_expected_f_from_joint as maximize_expected_f_from_joint,
)
from argmaxf.expected.dependent import (
    maximize_expected_f_from_mixture as maximize_expected_f_from_mixture,
)
from argmaxf.expected.dependent import (
    maximize_expected_f_from_samples as maximize_expected_f_from_samples,
)
from argmaxf.expected.macro import MacroDecision as MacroDecision
from argmaxf.expected.macro import (
    maximize_expected_macro_f as maximize_expected_macro_f,
)
from argmaxf.expected.maximize import maximize_expected_f as maximize_expected_f
from argmaxf.expected.sketch import ProbabilitySketch as ProbabilitySketch
from argmaxf.expected.values import expected_f as expected_f
from argmaxf.expected.values import expected_f_curve as expected_f_curve
from argmaxf.expected.weighted import WeightedDecision as WeightedDecision
from argmaxf.expected.weighted import (
    maximize_expected_weighted_f as maximize_expected_weighted_f,
)
from argmaxf.expected.worst_case import WorstCase as WorstCase
from argmaxf.expected.worst_case import maximize_worst_case_f as maximize_worst_case_f
from argmaxf.frames import TiesWarning as TiesWarning
from argmaxf.frames import decide as decide
from argmaxf.frames import evaluate as evaluate
from argmaxf.frames import summarize as summarize
from argmaxf.frames import tune as tune
from argmaxf.measures import Interval as Interval
from argmaxf.monitoring.labelling import LabelPlan as LabelPlan
from argmaxf.monitoring.labelling import estimate_f as estimate_f
from argmaxf.monitoring.labelling import plan_labels as plan_labels
from argmaxf.monitoring.monitor import Monitor as Monitor
from argmaxf.monitoring.monitor import Period as Period
from argmaxf.monitoring.prediction import PredictedF as PredictedF
from argmaxf.monitoring.prediction import predict_f as predict_f
from argmaxf.prior import estimate_rate as estimate_rate
from argmaxf.prior import shift_prior as shift_prior
from argmaxf.saved_threshold import SavedThreshold as SavedThreshold

__version__: str
