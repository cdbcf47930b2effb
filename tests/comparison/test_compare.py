"""argmaxf.compare: the public door for arrays, frames and pipelines, and what its result shows."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import ShuffleSplit, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import argmaxf
from argmaxf.comparison import METHODS

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def rare():
    return make_classification(900, weights=[0.9], class_sep=0.6, flip_y=0.05, random_state=0)


@pytest.fixture(scope="module")
def found(rare):
    X, y = rare
    return argmaxf.compare(X, y, LogisticRegression(), methods={SCRIPT: GaussianNB()})


def test_every_method_says_what_it_is():
    for key, method in METHODS.items():
        assert method.key == key
        assert method.rests_on in ("probabilities", "scores", "rows", "others")
        assert method.name
        assert method.about
    assert len({method.name for method in METHODS.values()}) == len(METHODS)


def test_it_prints_as_a_table_with_the_choice_and_why(found):
    text = str(found)
    for standing in found.methods:
        assert standing.name in text
        assert standing.method.symbol in text
        assert f"{standing.score.value:.4f}" in text
    assert found.reason in text
    assert f"*  {found.chosen}" in text
    assert found.chosen.lower() in found.reason.lower()
    assert f"{found.chosen}: F1 {found.method.score.value:.3f}" in found.verdict


def test_what_stands_behind_a_plus_or_minus_is_said(found):
    """Half of a 95 % interval of the difference from the method chosen, as in the command."""
    head, first = str(found).splitlines()[:2]
    assert f"minus {found.chosen} (± 95 %)" in head
    difference = found.methods[0].difference
    assert f"{difference.value:+.4f} ± {difference.high - difference.value:.4f}" in first


def test_words_for_classes_say_which_one_counts(rare):
    X, y = rare
    words = np.where(y == 1, "bad", "ok")
    auto = argmaxf.AutoFClassifier(LogisticRegression(), pos_label="bad", methods=["plain"])
    found = argmaxf.compare(X, words, auto)
    assert found.score_name == "F1 of 'bad'"
    assert "F1 of 'bad'" in str(found)
    assert "F1 of 'bad'" in found.verdict


def test_a_notebook_shows_names_as_text(found):
    html = found._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert html.count("<tr>") == 1 + len(found.methods)


def test_the_choice_can_be_fitted(rare, found):
    X, y = rare
    model = found.estimator.fit(X, y)
    assert f1_score(y, model.predict(X)) > 0.5 * found.scores[found.chosen]


def test_the_result_can_be_kept(found):
    assert str(pickle.loads(pickle.dumps(found))) == str(found)


def test_frames_pipelines_and_strings_are_the_same_comparison(rare):
    X, y = rare
    model = make_pipeline(StandardScaler(), LogisticRegression())
    plain = argmaxf.compare(X, y, model)
    frame = pd.DataFrame(X).rename(columns="x{}".format)
    words = pd.Series(np.where(y == 1, "fraud", "ok"), name="what")
    framed = argmaxf.compare(frame, words, argmaxf.AutoFClassifier(model, pos_label="fraud"))
    assert framed.labels == ("what",)
    assert framed.scores == pytest.approx(plain.scores)


def test_test_rows_are_rated_where_they_are_given(rare):
    X, y = rare
    found = argmaxf.compare(X[:500], y[:500], LogisticRegression(), test_set=(X[500:], y[500:]))
    assert found.n_rows == 400
    plain = LogisticRegression().fit(X[:500], y[:500]).predict(X[500:])
    assert found.scores["threshold 0.5"] == pytest.approx(f1_score(y[500:], plain))


@pytest.mark.parametrize(
    ("cv", "rows"),
    [(TimeSeriesSplit(4), 720), (ShuffleSplit(1, test_size=0.4, random_state=0), 360)],
)
def test_only_rows_that_are_held_out_are_rated(rare, cv, rows):
    X, y = rare
    found = argmaxf.compare(X, y, LogisticRegression(), cv=cv)
    assert found.n_rows == rows
    assert all(sum(standing.counts.values()) == rows for standing in found.methods)


def test_rows_held_out_twice_are_refused(rare):
    X, y = rare
    with pytest.raises(ValueError, match="cv must hold out every row at most once, row"):
        argmaxf.compare(X, y, LogisticRegression(), cv=ShuffleSplit(3, random_state=0))


def test_many_labels_are_compared_by_macro_f():
    X, y = make_multilabel_classification(300, n_classes=3, random_state=0)
    found = argmaxf.compare(X, pd.DataFrame(y, columns=["a", "b", "c"]), LogisticRegression())
    assert found.labels == ("a", "b", "c")
    assert found.score_name == "macro F1"
    table = found.evidence.predictions[found.chosen]
    assert found.scores[found.chosen] == pytest.approx(f1_score(y, table, average="macro"))


def test_a_label_with_too_few_positives_for_its_interval_is_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = pd.DataFrame({"often": X[:, 0] > 0.5, "seldom": X[:, 1] > np.sort(X[:, 1])[-9]}).astype(int)
    found = argmaxf.compare(X, y, LogisticRegression(), methods=["plain", "threshold"])
    (said,) = (note for note in found.notes if "less often than stated" in note)
    assert "'seldom' has only 8 positives in these rows" in said
    assert said in str(found)
    assert not found.method.score.reliable
    enough = argmaxf.compare(X, y["seldom"], LogisticRegression(), methods=["plain", "threshold"])
    assert not any("less often than stated" in note for note in enough.notes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measure": "f0"}, "beta must be positive and finite, got 0.0"),
        ({"methods": ["magic"]}, "methods must be one of 'plain', 'threshold'"),
        ({"y": np.zeros(900, dtype=int)}, "target '1' of X is always 0: nothing to learn"),
        ({"y": np.arange(900) < 3}, "has 3 positive rows in X, too few for one in each of 5"),
        ({"test_set": (np.ones((2, 20)), [0, 7])}, "X_test has the class '7', never seen"),
    ],
)
def test_bad_input_is_one_sentence(rare, change, message):
    X, y = rare
    arguments = {"X": X, "y": y, "estimator": LogisticRegression(), **change}
    with pytest.raises(ValueError, match=message):
        argmaxf.compare(**arguments)


class OnAnyScale(LogisticRegression):
    """Logistic regression whose scores are moved by what rows it saw: their order stays."""

    def decision_function(self, X):
        return super().decision_function(X) + 40 * np.sin(1e3 * self.coef_.sum())


def test_models_of_folds_that_score_on_other_scales_are_noticed(rare):
    X, y = rare
    usual = argmaxf.compare(X, y, LogisticRegression(), methods=["threshold"])
    moved = argmaxf.compare(X, y, OnAnyScale(), methods=["threshold", "expected"])
    tuned = "tuned threshold"
    assert moved.scores[tuned] < usual.scores[tuned] - 0.1
    (note,) = [note for note in moved.notes if "are on different scales" in note]
    assert f"{tuned} reaches F1 {moved.scores[tuned]:.3f}" in note
    assert "For the same reason, expected F is underestimated here" in note
    by_share = float(re.search(r"would reach (0\.\d+)", note)[1])
    assert by_share == pytest.approx(usual.scores[tuned], abs=0.1)
    for quiet in (
        usual,
        argmaxf.compare(X, y, FrozenEstimator(OnAnyScale().fit(X, y)), methods=["threshold"]),
        argmaxf.compare(X, y, OnAnyScale(), methods=["threshold"], test_set=(X, y)),
    ):
        assert "different scales" not in str(quiet)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"test_set": np.ones((3, 20))}, r"test_set must be a pair \(X_test, y_test\)"),
        ({"test_set": (np.ones((3, 20)), [0, 1])}, "inconsistent numbers of samples"),
        ({"methods": []}, "methods must name at least one of 'plain', 'threshold'"),
        ({"methods": ["blend"]}, "must also name 'expected' and 'soft', which 'blend' blends"),
    ],
)
def test_what_does_not_go_together_is_said(rare, options, said):
    with pytest.raises(ValueError, match=said):
        argmaxf.compare(*rare, LogisticRegression(), **options)


def test_an_auto_classifier_brings_its_options(rare):
    X, y = rare
    auto = argmaxf.AutoFClassifier(LogisticRegression(), measure="f2", set_size=50)
    found = argmaxf.compare(X, y, auto)
    assert found.score_name == "F2"
    assert found.evidence is None  # rows come in many sets
    assert found.scores == auto.fit(X, y).report_.scores
    with pytest.raises(ValueError, match="must be set on the AutoFClassifier, not passed to"):
        argmaxf.compare(X, y, auto, measure="f2")


def test_progress_is_reported_before_each_fit(rare, capsys):
    X, y = rare
    calls = []
    argmaxf.compare(
        X, y, GaussianNB(), methods=["plain"], cv=2, progress=lambda *a: calls.append(a)
    )
    assert calls == [
        (0, 2, "GaussianNB, fold 1 of 2"),
        (1, 2, "GaussianNB, fold 2 of 2"),
        (2, 2, ""),
    ]
    argmaxf.compare(X, y, GaussianNB(), methods=["plain"], cv=2, progress=True)
    assert "1 of 2 models fitted, next GaussianNB, fold 2 of 2" in capsys.readouterr().err
