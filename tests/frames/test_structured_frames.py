"""Structured sets in lazy frames that are read in batches: the answer is that of the array."""

import numpy as np
import polars as pl
import pytest

from argmaxf import decide, maximize_expected_f
from argmaxf.frames import decisions

N = 3_000
RNG = np.random.default_rng(5)
UNIFORM = RNG.random(N)
SETS = {
    "levels": RNG.choice([0.1, 0.3, 0.5, 0.8], N),
    "runs": np.repeat(RNG.random(N // 50), 50),
    "bimodal": np.where(UNIFORM < 0.1, RNG.beta(50, 2, N), RNG.beta(1, 200, N)),
    "geometric": np.maximum(0.99 ** np.arange(1.0, N + 1), 1e-12),
    "some certain": np.where(UNIFORM < 0.3, 1.0, np.where(UNIFORM < 0.6, 0.0, RNG.random(N))),
    "all certain": (UNIFORM < 0.3).astype(float),
    "two decimals": np.round(RNG.beta(0.5, 3, N), 2),
    "single precision": RNG.beta(0.5, 5, N).astype(np.float32),
    "near zero": RNG.random(N) * 1e-9,
    "very near zero": RNG.random(N) * 1e-280,
    "near one": 1 - RNG.random(N) * 1e-12,
    "equal": np.full(N, 0.2),
    "one high": np.concatenate([[0.9], np.full(N - 1, 1e-8)]),
    "one certain": np.eye(1, N)[0],
}
QUESTIONS = [
    {},
    {"beta": 0.01},
    {"beta": 100.0},
    {"measure": "jaccard", "zero_division": 1.0},
    {"max_selected": 20, "ties": "together"},
    {"max_selected": 700, "beta": 3.0},
]


@pytest.mark.parametrize("options", QUESTIONS, ids=str)
@pytest.mark.parametrize("name", SETS)
def test_batches_of_structured_sets_give_the_answer_of_the_array(monkeypatch, name, options):
    monkeypatch.setattr("argmaxf.frames.table.Rows.HELD", 256)
    p, asked = SETS[name], dict(options)
    frame = pl.LazyFrame({"p": p})
    answers = decisions(frame, "p", **options)
    if answers.kept_together:
        asked["ties"] = "together"
    exact, found = maximize_expected_f(p, **asked), answers[()]
    assert (found.k, found.threshold, found.n) == (exact.k, exact.threshold, N)
    assert found.expected == pytest.approx(exact.expected, rel=1e-12, abs=0.0)
    assert found.std == pytest.approx(exact.std, rel=1e-9, abs=0.0)
    labels = decide(frame, "p", **asked).collect()["label"].to_numpy()
    np.testing.assert_array_equal(labels, exact.selected)
