"""The public surface: which names there are, that tools know them, and that importing is light."""

import subprocess
import sys

import pytest

import argmaxf
from tests import ROOT

NAMES = [
    "AutoFClassifier",
    "BlendFClassifier",
    "ChanceGuarantee",
    "Comparison",
    "CostSensitiveFClassifier",
    "Curve",
    "Decision",
    "ExpectedF",
    "ExpectedFClassifier",
    "Guarantee",
    "GuaranteeError",
    "Interval",
    "JointDecision",
    "JointFClassifier",
    "LabelPlan",
    "LabelledSketch",
    "MacroDecision",
    "MarginFClassifier",
    "Monitor",
    "Period",
    "PredictedF",
    "ProbabilitySketch",
    "SavedThreshold",
    "SoftFClassifier",
    "Threshold",
    "ThresholdFClassifier",
    "TiesWarning",
    "WeightedDecision",
    "WorstCase",
    "__version__",
    "compare",
    "decide",
    "displays",
    "empirical_f_curve",
    "estimate_f",
    "estimate_rate",
    "evaluate",
    "expected_f",
    "expected_f_curve",
    "f_interval",
    "maximize_empirical_f",
    "maximize_expected_f",
    "maximize_expected_f_from_joint",
    "maximize_expected_f_from_mixture",
    "maximize_expected_f_from_samples",
    "maximize_expected_macro_f",
    "maximize_expected_weighted_f",
    "maximize_worst_case_f",
    "measures",
    "objectives",
    "plan_labels",
    "predict_f",
    "shift_prior",
    "summarize",
    "theory",
    "torch",
    "tune",
]
HEAVY = [
    *("numpy", "scipy", "sklearn", "narwhals", "numba", "matplotlib", "pandas", "polars"),
    *("pyarrow", "duckdb", "dask", "pyspark", "torch", "typer", "joblib"),
]


def python(code):
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_the_public_names_are_these():
    assert argmaxf.__all__ == NAMES
    assert dir(argmaxf) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_public_names_exist_and_are_documented(name):
    assert getattr(argmaxf, name).__doc__


def test_public_modules_need_no_import_of_their_own():
    assert python("import argmaxf; print(argmaxf.theory.GaussianMixture.__name__)") == [
        "GaussianMixture"
    ]


def test_a_name_that_is_not_there_is_refused():
    with pytest.raises(AttributeError, match="module 'argmaxf' has no attribute 'not_there'"):
        _ = argmaxf.not_there


def test_import_is_light():
    assert python(f"import sys, argmaxf; print(*(m for m in {HEAVY} if m in sys.modules))") == []


def test_a_decision_takes_no_estimators_and_no_engines():
    unneeded = [m for m in HEAVY if m not in ("numpy", "narwhals")]
    code = "import sys, argmaxf; argmaxf.maximize_expected_f([0.2, 0.5]);"
    assert python(code + f"print(*(m for m in {unneeded} if m in sys.modules))") == []


def test_mypy_knows_every_public_name_and_no_other(tmp_path):
    pytest.importorskip("mypy")
    uses = [f"argmaxf.{name}" for name in [*NAMES, "displays.EmpiricalFDisplay", "not_there"]]
    (tmp_path / "uses.py").write_text("\n".join(["import argmaxf", *uses]) + "\n")
    command = ["-m", "mypy", "--no-error-summary", "--no-pretty", str(tmp_path / "uses.py")]
    run = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
    assert run.stderr == ""
    (line,) = run.stdout.splitlines()
    assert line.endswith('error: Module has no attribute "not_there"  [attr-defined]')


def test_a_decision_shows_the_answer_first_and_in_short():
    shown = repr(argmaxf.maximize_expected_f([0.1, 0.5]))
    assert shown == "Decision(k=1, threshold=0.5, expected=0.483333 ± 0.488478, n=2)"
    worst = argmaxf.maximize_worst_case_f([0.1], [0.5], regret=True)
    assert repr(worst).startswith("WorstCase(k=1, threshold=0.1, expected=0.1 ± 0.3, n=1, regret=")
    many = argmaxf.maximize_expected_f([[0.1, 0.5]] * 1000, average="samples")
    assert repr(many).startswith("Decision(k=[1, 1, ..., 1, 1], threshold=[0.5, 0.5, ...")
    assert len(repr(many)) < 250
