"""Training for F on Reuters-21578, at full size."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score

from argmaxf import MarginFClassifier, SoftFClassifier
from reproduction.datasets import load_reuters

FOLDER = Path(os.environ.get("ARGMAXF_DATA", "data"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (FOLDER / "reuters21578").is_dir(), reason="ARGMAXF_DATA has no Reuters-21578"
    ),
]


@pytest.fixture(scope="module")
def reuters():
    return load_reuters(data_dir=FOLDER)


@pytest.mark.parametrize(("at_least", "expected"), [(100, 83.3), (50, 82.3)])
def test_soft_f_reaches_what_an_independent_implementation_reached(reuters, at_least, expected):
    """Macro-F1 of F^δ, the paper's Table 3 with title and body: penalized dummy, λ = 1/n."""
    topics = reuters.usable(at_least)
    model = SoftFClassifier(penalize_intercept=True, standardize=False)  # counts, as they are there
    predicted = model.fit(reuters.X_train, reuters.Y_train[:, topics]).predict(reuters.X_test)
    f1 = f1_score(reuters.Y_test[:, topics], predicted, average="macro")
    assert 100 * f1 == pytest.approx(expected, abs=1.0)


def test_margin_on_earn_ends_with_its_proof(reuters):
    topic = reuters.labels.index("earn")
    model = MarginFClassifier(C=0.01).fit(reuters.X_train, reuters.Y_train[:, topic])
    trained = model.models_[0]
    assert trained.gap <= 1e-3 * trained.objective
    assert f1_score(reuters.Y_test[:, topic], model.predict(reuters.X_test)) > 0.97
    # the bound on the training loss of F that the objective gives
    slack = (trained.objective - 0.5 * np.sum(model.coef_**2)) / (0.01 * 9603)
    score = reuters.X_train @ model.coef_[0] + model.intercept_[0]
    assert 1 - f1_score(reuters.Y_train[:, topic], score > 0) <= slack
