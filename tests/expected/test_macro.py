"""Labels per row: against every labelling there is, and never above the proof."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from argmaxf import MacroDecision, expected_f, maximize_expected_macro_f
from argmaxf.expected import macro_solver, threads
from tests.judges import all_label_vectors, every_set

FAMILIES = {
    "uniform": lambda rng, shape: rng.random(shape),
    "skewed": lambda rng, shape: rng.beta(0.3, 2, shape),
    "equal": lambda rng, shape: np.full(shape, rng.random()),
    "two values": lambda rng, shape: rng.choice([0.2, 0.7], shape),
    "near one": lambda rng, shape: 1 - rng.random(shape) * 0.05,
    "rare": lambda rng, shape: rng.random(shape) * 0.05,
    "rows sum to one": lambda rng, shape: rng.dirichlet(np.ones(shape[1]), shape[0]),
    "certain": lambda rng, shape: rng.choice([0.0, 0.5, 1.0], shape),
}


def labellings(n, size, b, exactly):
    """Every allowed choice, as the number of the set of rows that each column gets."""
    rows = [r for r in all_label_vectors(size) if (r.sum() == b if exactly else r.sum() <= b)]
    sets = np.zeros((1, size), np.int64)
    for i in range(n):
        sets = (sets[:, None] + np.array(rows) * 2 ** (n - 1 - i)).reshape(-1, size)
    return sets


def best_by_force(p, b, exactly, beta=1.0, zero_division=0.0):
    """The highest mean over columns of E[F], every set of every column by the definition."""
    n, size = p.shape
    states = all_label_vectors(n)
    sets = labellings(n, size, b, exactly)
    total = np.zeros(len(sets))
    for c in range(size):
        mass = np.where(states, p[:, c], 1 - p[:, c]).prod(axis=1)
        total += every_set(states, mass, beta, zero_division)[0][sets[:, c]]
    return total.max() / size


def rule(b, exactly):
    return {"labels_per_row" if exactly else "max_labels_per_row": b}


def decide(p, b, exactly, **options):
    return maximize_expected_macro_f(p, **rule(b, exactly), **options)


def random_case(rng, number):
    """A small matrix, and what is asked of it."""
    size = int(rng.integers(1, 5))
    n = int(rng.integers(1, 7 if size < 4 else 5))
    family = list(FAMILIES.values())[number % len(FAMILIES)]
    b, exactly = int(rng.integers(1, min(size, 2) + 1)), bool(rng.integers(2))
    options = {"beta": rng.choice([0.5, 1.0, 2.0]), "zero_division": float(rng.integers(2))}
    return family(rng, (n, size)), b, exactly, options


def check_against_force(seed, cases):
    rng = np.random.default_rng(seed)
    for number in range(cases):
        p, b, exactly, options = random_case(rng, number)
        best = best_by_force(p, b, exactly, **options)
        decision = decide(p, b, exactly, **options)
        assert decision.expected == pytest.approx(best, rel=1e-12, abs=1e-300)
        assert decision.bound >= best * (1 - 1e-12)
        assert decision.gap == 0.0
        counts = decision.selected.sum(axis=1)
        assert (counts == b).all() if exactly else (counts <= b).all()


def test_the_best_of_all_labellings():
    check_against_force(seed=0, cases=800)


@pytest.mark.slow
def test_the_best_of_all_labellings_in_ten_thousand_cases():
    check_against_force(seed=1, cases=10_000)


@pytest.mark.parametrize("family", FAMILIES)
def test_prices_alone_never_prove_too_much(family, monkeypatch):
    monkeypatch.setattr(macro_solver, "MOST_PARTS", 0)
    rng = np.random.default_rng(2)
    for number in range(30):
        p = FAMILIES[family](rng, (5, 3))
        exactly = number % 2 == 0
        bound = decide(p, 1, exactly, zero_division=number % 3 / 2).bound
        assert bound >= best_by_force(p, 1, exactly, zero_division=number % 3 / 2) * (1 - 1e-12)


@pytest.mark.parametrize("exactly", [True, False])
@pytest.mark.parametrize("zero_division", [0.0, 1.0])
def test_value_and_spread_are_those_of_the_labels(exactly, zero_division):
    p = np.random.default_rng(3).beta(0.5, 3, (60, 7))
    found = decide(p, 2, exactly, beta=2.0, zero_division=zero_division)
    columns = [
        expected_f(p[:, c], found.selected[:, c], beta=2.0, zero_division=zero_division)
        for c in range(7)
    ]
    np.testing.assert_allclose(found.expected_of_columns, [f.mean for f in columns], rtol=1e-12)
    assert found.expected == pytest.approx(np.mean([f.mean for f in columns]), rel=1e-12)
    assert found.std == pytest.approx(np.linalg.norm([f.std for f in columns]) / 7, rel=1e-9)
    np.testing.assert_array_equal(found.k, found.selected.sum(axis=0))
    lowest = np.where(found.selected, p, np.inf).min(axis=0)
    np.testing.assert_array_equal(found.threshold, lowest)


def average_over_present(p, selected, zero_division):
    """E[mean F over the columns that have a positive], over all label matrices."""
    n, size = p.shape
    total = 0.0
    for cells in itertools.product((0, 1), repeat=n * size):
        y = np.array(cells).reshape(n, size)
        present = y.any(axis=0)
        f = 2 * (y * selected).sum(axis=0) / np.maximum(y.sum(axis=0) + selected.sum(axis=0), 1)
        value = f[present].mean() if present.any() else zero_division
        total += np.where(y, p, 1 - p).prod() * value
    return total


@pytest.mark.parametrize("zero_division", [0.0, 1.0])
def test_average_over_the_columns_present(zero_division):
    p = np.random.default_rng(4).random((3, 3)) * [1.0, 0.5, 0.1]
    found = decide(p, 1, True, averaged_over="present", zero_division=zero_division)
    values = [
        average_over_present(p, np.eye(3, dtype=int)[list(labels)], zero_division)
        for labels in itertools.product(range(3), repeat=3)
    ]
    assert found.expected == pytest.approx(max(values), rel=1e-12)
    value = average_over_present(p, found.selected, zero_division)
    assert found.expected == pytest.approx(value, rel=1e-12)
    assert found.gap == 0.0
    assert np.isnan(found.std)


def long_tail(n, size, cells, seed=0):
    """A sparse matrix in which a few columns are common and many are rare."""
    rng = np.random.default_rng(seed)
    weight = 1 / (np.arange(size) + 5.0)
    columns = np.array([rng.choice(size, cells, False, weight / weight.sum()) for _ in range(n)])
    p = rng.beta(0.3, 2, (n, cells)).clip(1e-6)
    return sparse.csr_array((p.ravel(), columns.ravel(), np.arange(n + 1) * cells), (n, size))


def test_a_long_tail_is_proven_to_a_hundredth_of_a_percent():
    found = decide(long_tail(400, 120, 15), 5, True)
    assert found.gap < 1e-4
    assert found.expected <= found.bound
    assert (found.selected.sum(axis=1) == 5).all()


def test_rows_in_any_order_and_any_number_of_threads(monkeypatch):
    p = long_tail(300, 60, 12)
    found = decide(p, 3, True, tol=1e-4)
    order = np.random.default_rng(5).permutation(300)
    shuffled = decide(p[order], 3, True, tol=1e-4)
    assert (shuffled.selected != found.selected[order]).nnz == 0
    assert (shuffled.expected, shuffled.bound) == (found.expected, found.bound)
    monkeypatch.setattr("argmaxf.expected.macro_solver.threads_for", lambda n: 3)
    threaded = decide(p, 3, True, tol=1e-4)
    assert (threaded.selected != found.selected).nnz == 0
    assert threaded.bound == found.bound
    assert threads.threads_for(1) == 1


def test_sparse_and_dense_agree_where_nothing_is_zero():
    p = np.random.default_rng(6).random((30, 6))
    dense, cells = decide(p, 2, True), decide(sparse.csc_matrix(p), 2, True)
    assert isinstance(cells, MacroDecision)
    assert isinstance(cells.selected, sparse.csr_matrix)
    np.testing.assert_array_equal(cells.selected.toarray(), dense.selected)
    assert cells.expected == dense.expected


@pytest.mark.parametrize("averaged_over", ["all", "present"])
@pytest.mark.parametrize("zero_division", [0.0, 1.0])
def test_columns_without_cells_count_and_cost_nothing(averaged_over, zero_division):
    p = np.random.default_rng(8).random((6, 4))
    options = {"averaged_over": averaged_over, "zero_division": zero_division}
    columns, size = [3, 7, 5_000, 9_999], 10_000
    wide = sparse.csr_array((p.ravel(), np.tile(columns, 6), np.arange(7) * 4), shape=(6, size))
    found = decide(wide, 1, False, **options)
    assert found.gap == 0.0
    np.testing.assert_array_equal(found.k, np.asarray(found.selected.sum(axis=0)).ravel())
    assert found.expected_of_columns[0] == zero_division
    assert found.threshold[0] == np.inf
    alone = decide(p, 1, False, **options)
    if averaged_over == "present":
        assert found.expected == pytest.approx(alone.expected, rel=1e-12)
    else:
        total = alone.expected * 4 + zero_division * (size - 4)
        assert found.expected == pytest.approx(total / size, rel=1e-12)


def test_progress_is_told_and_a_wide_tolerance_ends_early():
    p = long_tail(200, 50, 10)
    steps = []
    decide(p, 3, True, tol=0.0, progress=lambda *step: steps.append(step))
    assert [number for number, _, _ in steps] == list(range(1, len(steps) + 1))
    assert all(value <= bound for _, value, bound in steps)
    bounds = [bound for _, _, bound in steps]
    assert bounds == sorted(bounds, reverse=True)
    early = []
    decide(p, 3, True, tol=0.5, progress=lambda *step: early.append(step))
    assert len(early) < len(steps)


def test_a_small_problem_that_stays_open_ends_soon_and_says_so(monkeypatch):
    monkeypatch.setattr(macro_solver, "MOST_CELLS", 2_000)
    p = (np.random.default_rng(0).random((20, 5)) > 0.5).astype(float)  # certain: many equal ways
    steps = []
    found = decide(p, 1, False, progress=lambda *step: steps.append(step))
    assert 0.0 < found.gap < 0.01
    assert steps[-1] == (len(steps), found.expected, found.bound)
    assert len(steps) <= macro_solver.PRICE_STEPS + 20  # parts of 100 cells each


@pytest.mark.parametrize(
    ("p", "b", "exactly", "expected"),
    [
        (np.zeros((4, 3)), 1, True, 0.0),
        (np.zeros((4, 3)), 1, False, 0.0),
        (np.ones((4, 3)), 3, True, 1.0),
        (np.ones((4, 1)), 1, True, 1.0),
        (np.ones((1, 1)), 5, False, 1.0),
        (np.eye(3), 1, True, 1.0),
        (np.ones((0, 3)), 1, True, 0.0),
        (np.ones((3, 0)), 2, False, 0.0),
    ],
)
def test_corners(p, b, exactly, expected):
    found = decide(p, b, exactly)
    assert found.expected == pytest.approx(expected, abs=1e-15)
    assert found.gap == 0.0
    assert found.selected.shape == p.shape
    assert decide(p, b, exactly, zero_division=1.0).gap == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels_per_row": 0}, "labels_per_row must be a whole number of at least 1, got 0"),
        ({"labels_per_row": 1.5}, "labels_per_row must be a whole number of at least 1, got 1.5"),
        ({"max_labels_per_row": -1}, "max_labels_per_row must be .* at least 1, got -1"),
        ({"labels_per_row": 1, "max_labels_per_row": 2}, "got 1 and 2"),
        ({"labels_per_row": 4}, "labels_per_row=4 is more than row 0 can give: it has 3 cells"),
        ({"labels_per_row": 1, "measure": "jaccard"}, "needs F_β"),
        ({"labels_per_row": 1, "averaged_over": "some"}, "'all', 'present'; got 'some'"),
        ({"labels_per_row": 1, "tol": -1}, "tol must be finite and not negative, got -1"),
        ({"labels_per_row": 1, "progress": 1}, "progress must be False, True or a function, got 1"),
        ({"tol": 0.1}, "give either labels_per_row or max_labels_per_row, got None and None"),
    ],
)
def test_wrong_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        maximize_expected_macro_f(np.full((2, 3), 0.5), **arguments)


def test_a_vector_is_refused():
    with pytest.raises(ValueError, match="p must have two dimensions, got 1"):
        maximize_expected_macro_f([0.5, 0.1], labels_per_row=1)


def test_progress_can_be_printed(capsys):
    maximize_expected_macro_f([[0.5, 0.1], [0.4, 0.2]], labels_per_row=1, progress=True)
    assert capsys.readouterr().err.startswith("step 1: expected macro F 0.")


def test_a_bad_probability_is_named():
    with pytest.raises(ValueError, match=r"got 1.5 at position \(1, 0\)"):
        decide([[0.5, 0.1], [1.5, 0.2]], 1, True)


def test_a_sparse_row_that_is_too_short_is_named():
    p = sparse.csr_array([[0.5, 0.5, 0.1], [0.2, 0.0, 0.0]])
    with pytest.raises(ValueError, match="labels_per_row=2 is more than row 1 can give: it has 1"):
        decide(p, 2, True)
    assert decide(p, 2, False).selected.sum() >= 1
