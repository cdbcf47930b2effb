"""What is given to `fit` reaches the wrapped classifier, and groups are never apart."""

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, LeaveOneGroupOut

from argmaxf import (
    AutoFClassifier,
    BlendFClassifier,
    CostSensitiveFClassifier,
    ExpectedFClassifier,
    JointFClassifier,
    ThresholdFClassifier,
)
from argmaxf.estimators.meta import PlainClassifier

HOLDING_OUT = [
    ThresholdFClassifier,
    ExpectedFClassifier,
    CostSensitiveFClassifier,
    BlendFClassifier,
    AutoFClassifier,
]
ON_ALL_ROWS = [PlainClassifier, JointFClassifier]
rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
y = (X[:, 0] + rng.normal(size=120) > 0.5).astype(int)
SEEN = []


class Noting(LogisticRegression):
    """Notes what its `fit` is given."""

    def fit(self, X, y, sample_weight=None, marks=None, note=None):
        SEEN.append((X[:, 0].copy(), marks, note))
        return super().fit(X, y, sample_weight)


@pytest.fixture(autouse=True)
def _nothing_seen():
    SEEN.clear()


@pytest.mark.parametrize("wrapper", HOLDING_OUT)
@pytest.mark.parametrize("cv", [3, 0.3])
@pytest.mark.parametrize("weight", [None, np.ones(120)])
def test_parameters_are_passed_on_and_cut_to_the_rows_of_a_fold(wrapper, cv, weight):
    wrapper(Noting(), cv=cv).fit(X, y, weight, marks=X[:, 0], note="kept")
    assert len(SEEN) >= (1 if cv == 0.3 else 3)
    for rows, marks, note in SEEN:
        assert np.array_equal(rows, marks)
        assert note == "kept"


@pytest.mark.parametrize("wrapper", ON_ALL_ROWS)
@pytest.mark.parametrize("target", [y, np.column_stack([y, 1 - y])], ids=["binary", "multilabel"])
def test_parameters_of_models_on_all_rows_are_passed_on(wrapper, target):
    wrapper(Noting()).fit(X, target, marks=X[:, 0], note="kept")
    assert SEEN
    assert all(np.array_equal(r, marks) and note == "kept" for r, marks, note in SEEN)


@pytest.mark.parametrize("wrapper", ON_ALL_ROWS)
def test_groups_of_a_classifier_that_holds_out_no_rows_are_for_the_one_it_wraps(wrapper):
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=GroupKFold(3))
    assert wrapper(search).fit(X, y, groups=np.arange(120) % 6).estimators_[0].n_splits_ == 3


@pytest.mark.parametrize("wrapper", [*HOLDING_OUT, *ON_ALL_ROWS])
def test_metadata_routing_decides_where_it_is_on(wrapper):
    with sklearn.config_context(enable_metadata_routing=True):
        asking = Noting().set_fit_request(marks=True, sample_weight=True)
        wrapper(asking).fit(X, y, np.ones(120), marks=X[:, 0])
        assert all(np.array_equal(rows, marks) for rows, marks, _ in SEEN)
        with pytest.raises(Exception, match="marks"):
            wrapper(Noting().set_fit_request(sample_weight=True)).fit(X, y, marks=X[:, 0])


@pytest.mark.parametrize("wrapper", [*HOLDING_OUT, *ON_ALL_ROWS])
def test_a_parameter_may_go_by_another_name_where_routing_is_on(wrapper):
    with sklearn.config_context(enable_metadata_routing=True):
        asking = Noting().set_fit_request(marks="signs", sample_weight="sample_weight")
        wrapper(asking).fit(X, y, np.ones(120), signs=X[:, 0])
        assert SEEN
        assert all(np.array_equal(rows, marks) for rows, marks, _ in SEEN)


@pytest.mark.parametrize("wrapper", [*HOLDING_OUT, *ON_ALL_ROWS])
def test_warnings_of_fit_point_to_the_line_that_called_it(wrapper):
    with pytest.warns(UserWarning, match="y has one class only") as said:
        wrapper(LogisticRegression()).fit(X, np.zeros(120, dtype=int))
    assert {warning.filename for warning in said} == {__file__}


@pytest.mark.parametrize("wrapper", HOLDING_OUT)
@pytest.mark.parametrize("cv", [3, 0.3, GroupKFold(3), LeaveOneGroupOut()])
def test_rows_of_a_group_are_held_out_together(wrapper, cv):
    groups = np.arange(120) % 6
    wrapper(Noting(), cv=cv).fit(X, y, groups=groups)
    for rows, _, _ in SEEN:
        trained = np.isin(X[:, 0], rows)
        share = [trained[groups == g].mean() for g in range(6)]
        assert set(share) <= {0.0, 1.0}
    assert any(len(rows) < 120 for rows, _, _ in SEEN)


def test_groups_of_another_length_are_refused():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ThresholdFClassifier(LogisticRegression()).fit(X, y, groups=[1, 2, 3])


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
def test_early_stopping_of_lightgbm_works():
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=200, min_child_samples=2, verbose=-1)
    stop = lightgbm.early_stopping(3, verbose=False)
    fitted = ThresholdFClassifier(model, cv=2).fit(
        X[:80], y[:80], eval_set=[(X[80:], y[80:])], callbacks=[stop]
    )
    assert 0 < fitted.estimators_[0].best_iteration_ < 200
