"""The experiments: the harness, what is written, and the methods against their definitions."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from argmaxf.theory import GaussianMixture
from reproduction import adaptation, figure1, run, table1, table4
from reproduction.claims import CLAIMS, answers
from reproduction.models import (
    TrainTestScores,
    by_expectation,
    by_threshold,
    f1,
    logistic,
    represented,
)
from reproduction.report import (
    columns,
    markdown_table,
    mean_sd,
    paired_difference,
    published,
    rows,
    t_interval,
)
from reproduction.run import FOLDER, NAMES, Cell, Plan, reproduce, run_cells

# ------------------------------------------------------------------ the harness


def note_and_square(x, notes):
    """A cell that leaves a trace whenever it is computed."""
    with open(notes, "a", encoding="utf-8") as file:
        file.write(f"{x}\n")
    if x == 3 and "stop" in Path(notes).name:
        raise KeyboardInterrupt
    return {"square": x * x}


def toy(tmp_path, name="notes.txt"):
    notes = tmp_path / name
    cells = [
        Cell(f"cell-{x}", note_and_square, {"x": x, "notes": str(notes)}, cost=9 - x)
        for x in range(5)
    ]
    return cells, lambda: sorted(notes.read_text().split()) if notes.exists() else []


@pytest.mark.parametrize("jobs", [1, 2])
def test_cells_keep_their_order_and_are_computed_once(tmp_path, jobs):
    cells, computed = toy(tmp_path)
    done = []
    outcomes = run_cells(cells, tmp_path / "cells", jobs, done.append)
    assert [o.result["square"] for o in outcomes] == [0, 1, 4, 9, 16]
    assert sorted(cell.key for cell in done) == [cell.key for cell in cells]
    again = run_cells(cells, tmp_path / "cells", jobs)
    assert [o.result for o in again] == [o.result for o in outcomes]
    assert computed() == ["0", "1", "2", "3", "4"]


def test_interrupted_run_goes_on_where_it_stopped(tmp_path):
    cells, computed = toy(tmp_path, "stop.txt")
    with pytest.raises(KeyboardInterrupt):
        run_cells(cells, tmp_path / "cells")
    kept = len(list((tmp_path / "cells").glob("cell-*.json")))
    assert kept == 3
    (tmp_path / "stop.txt").rename(tmp_path / "old.txt")
    with pytest.raises(KeyboardInterrupt):
        run_cells(cells, tmp_path / "cells")
    assert computed() == ["3"]


@pytest.mark.parametrize("damage", ["", "{", '{"fingerprint": "other", "result": 1}', "[]"])
def test_damaged_cell_is_computed_again(tmp_path, damage):
    cells, computed = toy(tmp_path)
    run_cells(cells, tmp_path / "cells")
    (tmp_path / "cells" / "cell-2.json").write_text(damage)
    outcomes = run_cells(cells, tmp_path / "cells")
    assert outcomes[2].result == {"square": 4}
    assert computed().count("2") == 2
    assert len(computed()) == 6


def test_a_kept_cell_counts_only_for_the_same_code(tmp_path, monkeypatch):
    """A copy of the library with one changed file has another fingerprint, and so another cell."""
    cell = Cell("default", table1.run_setting, {"setting": "Default", "seed": 1})
    before = cell.fingerprint()
    library = Path(run.argmaxf.__file__).parent
    copy = tmp_path / "argmaxf"
    shutil.copytree(library, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(run.argmaxf, "__file__", str(copy / "__init__.py"))
    run.code_digest.cache_clear()
    assert cell.fingerprint() == before
    changed = next(copy.rglob("*kernels.py"))
    changed.write_text(changed.read_text() + "\nCHANGED = True\n")
    run.code_digest.cache_clear()
    assert cell.fingerprint() != before
    monkeypatch.undo()
    run.code_digest.cache_clear()
    assert Cell("x", figure1.run_panel, cell.params).fingerprint() != cell.fingerprint()


def test_seeds_and_quick_choose_the_work():
    assert Plan().repeats(full=20, quick=3) == 20
    assert Plan(quick=True).repeats(full=20, quick=3) == 3
    assert Plan(seeds=7, quick=True).repeats(full=20, quick=3) == 7


# ------------------------------------------------------------------ what is written


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return folder, reproduce(["adaptation", "figure1"], folder, Plan(seeds=2, quick=True))


def test_every_form_is_written(small_run):
    folder, done = small_run
    assert list(done.reports) == ["figure1", "adaptation"]
    names = {path.name for path in (folder / "results").iterdir()}
    wanted = {f"{e}.{s}" for e in done.reports for s in ("md", "csv", "json", "png", "svg")}
    assert names == wanted | {"timing.md"}
    page = (folder / "results.md").read_text()
    assert "results/adaptation.png" in page
    assert "python -m reproduction figure1 adaptation --seeds 2 --quick" in page
    assert set(done.files) == {*(folder / "results").iterdir(), folder / "results.md"}


def test_same_seed_same_bytes_whatever_the_jobs(small_run, tmp_path):
    folder, _ = small_run
    reproduce(["figure1", "adaptation"], tmp_path, Plan(seeds=2, quick=True), jobs=2)
    for path in sorted((folder / "results").iterdir()):
        if path.name != "timing.md":
            assert path.read_bytes() == (tmp_path / "results" / path.name).read_bytes(), path.name
    assert (folder / "results.md").read_bytes() == (tmp_path / "results.md").read_bytes()


def test_csv_and_json_hold_the_same_numbers(small_run):
    folder, done = small_run
    records = json.loads((folder / "results" / "adaptation.json").read_text())["records"]
    lines = (folder / "results" / "adaptation.csv").read_text().splitlines()
    assert lines[0].split(",") == list(records[0])
    assert float(lines[1].split(",")[1]) == records[0]["mean"]
    assert records[0]["mean"] == pytest.approx(done.reports["adaptation"].records[0]["mean"])


def test_unknown_names_and_counts_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"experiment must be one of .*got 'table9'"):
        reproduce(["table9"], tmp_path, Plan())
    with pytest.raises(ValueError, match="seeds must be at least 1, got 0"):
        reproduce(["figure1"], tmp_path, Plan(seeds=0))
    with pytest.raises(ValueError, match="jobs must be at least 1, got -1"):
        reproduce(["figure1"], tmp_path, Plan(), jobs=-1)


def test_markdown_table_escapes_bars():
    assert markdown_table(["a", "b"], [["P(Y|X)", "1"]]).splitlines()[2] == r"| P(Y\|X) | 1 |"


# ------------------------------------------------------------------ the paper's numbers


def test_paper_file_is_complete():
    sizes = {"table1": (6, 12), "table2": (2, 11), "adaptation": (1, 4), "table3": (4, 7)}
    sizes["table4"] = (11, 6)
    for name, shape in sizes.items():
        assert (len(rows(name)), len(columns(name))) == shape
        assert all(published(name, r, c) > 0 for r in rows(name) for c in columns(name))
    assert published("table1", "O=50", "ML^δ R1") == 89.29


def test_no_printed_number_is_hard_coded_elsewhere():
    numbers = {
        f"{published(name, r, c):.2f}"
        for name in ("table1", "table2", "table4")
        for r in rows(name)
        for c in columns(name)
        if c != "labels"
    }
    for path in FOLDER.glob("*.py"):
        found = set(re.findall(r"\d\d\.\d\d", path.read_text())) & numbers
        assert found == set(), f"{path.name} holds {found}"


def test_theory_column_to_all_printed_digits():
    for setting in rows("table1"):
        parameters, _ = table1.SETTINGS[setting]
        value = 100 * GaussianMixture(**parameters).optimum().fbeta
        assert int(100 * value) / 100 == published("table1", setting, "Theory")


# ------------------------------------------------------------------ the methods


@pytest.mark.parametrize("as_sparse", [False, True])
def test_logistic_minimizes_what_it_says(as_sparse):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 3)), rng.integers(0, 2, 80)
    given = sparse.csr_array(X) if as_sparse else X
    scores = logistic(given, y, given, penalty=0.7)
    w = np.linalg.lstsq(X, scores.train, rcond=None)[0]
    np.testing.assert_allclose(X @ w, scores.train, atol=1e-8)
    np.testing.assert_allclose(X.T @ (expit(X @ w) - y) + 0.7 * w, 0.0, atol=1e-5)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_logistic_with_one_class_is_the_penalized_minimum(as_sparse):
    X, y = np.ones((5, 1)), np.zeros(5, dtype=int)
    given = sparse.csr_array(X) if as_sparse else X
    scores = logistic(given, y, given, penalty=1.0)
    w = scores.train[0]
    assert scores.train.shape == (5,)
    assert 5 * expit(w) + w == pytest.approx(0.0, abs=1e-5)


def test_f1_of_rows_and_of_nothing():
    y = np.array([[1, 0, 1], [0, 0, 0]])
    np.testing.assert_allclose(f1(y, np.array([[True, True, False], [False] * 3])), [50.0, 0.0])


def test_decisions_are_by_threshold_or_by_set():
    scores = TrainTestScores(np.array([-2.0, -1.0, 1.0]), np.array([-1.2, 0.1, 3.0]))
    assert by_threshold(scores, np.array([0, 1, 1])).tolist() == [True, True, True]
    assert by_expectation(np.array([-9.0, -8.0])).sum() >= 1  # at least one, with 0/0 = 0
    assert by_expectation(np.array([-9.0, -8.0]), zero_division=1.0).sum() == 0
    rows_ = np.array([[3.0, -3.0], [-0.1, 0.1]])
    np.testing.assert_array_equal(by_expectation(rows_)[0], by_expectation(rows_[0]))


def test_figure1_is_zero_kl_at_the_truth_and_lowest_loss_near_it():
    panel = dict(zip(figure1.ASSUMED, figure1.run_panel(0.5, seed=0), strict=True))
    assert panel[0.5][1] == pytest.approx(0.0, abs=1e-12)
    assert panel[0.5][0] < panel[0.01][0]
    assert panel[0.5][0] < panel[0.99][0]


def test_adaptation_keeps_the_unlikely_only():
    mixture = GaussianMixture()
    X, y = adaptation.sample_unlikely(mixture, 500, np.random.default_rng(0))
    assert len(X) == len(y) == 500
    assert mixture.posterior(X).max() < 0.5
    assert 0 < y.sum() < 50


def test_default_and_offset_rows_share_their_noise():
    first, far = (table1.run_setting(s, 1) for s in ("Default", "O=50"))
    assert first["Truth^E"] == pytest.approx(far["Truth^E"])
    assert first["ML^E R1"] == pytest.approx(far["ML^E R1"], abs=0.2)
    assert far["ML^E R1 after 2"] < far["ML^E R1"] - 10


def test_cross_validation_of_a_label_that_one_fold_lacks():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((40, 2)), np.zeros(40, dtype=int)
    y[3] = 1
    found = table4._cross_validate(X, y, seed=0)
    assert all(np.isfinite(values).all() for values in found.values())
    assert table4._cross_validate_soft(X, y, seed=0).max() <= 50.0


def test_mean_sd_and_intervals():
    assert mean_sd([1.0, 2.0, 3.0]) == (2.0, 1.0)
    gap = paired_difference([2.0, 3.0, 4.0], [1.0, 1.0, 1.0])
    assert (gap.value, gap.low >= 1.0, gap.high <= 3.0) == (2.0, True, True)
    assert t_interval([1.0, 2.0, 3.0]).low == pytest.approx(2.0 - 4.302653 / np.sqrt(3))


def test_verdicts_follow_the_findings():
    found = {"seeds": 4, "seeds where E beats δ": 4}
    found |= dict.fromkeys(("Truth^E", "ML^E", "Truth^δ", "ML^δ"), (30.0, 1.0))
    assert [v for _, v, _ in answers({"adaptation": found})] == ["supported"]
    found["seeds where E beats δ"] = 1
    assert [v for _, v, _ in answers({"adaptation": found})] == ["not supported"]
    assert {name for claim in CLAIMS for name in claim.needs} <= set(NAMES)


def test_versions_are_those_installed():
    assert run.versions()["numpy"] == np.__version__


# ------------------------------------------------------------------ at full size


@pytest.mark.slow
def test_table1_agrees_with_the_paper(tmp_path):
    done = reproduce(["table1"], tmp_path, Plan(), jobs=2)
    findings = done.reports["table1"].findings
    assert findings["cells"] == 66
    assert findings["cells within 2 sd"] >= 60
    assert findings["theory to all digits"]


@pytest.mark.slow
def test_quick_look_at_everything(tmp_path):
    done = reproduce(["all"], tmp_path, Plan(quick=True), jobs=2)
    assert tuple(done.reports) == NAMES
    assert len(answers({n: r.findings for n, r in done.reports.items()})) == len(CLAIMS)


def test_representations():
    X = np.arange(6.0).reshape(2, 3)
    assert represented(X, "R0") is X
    np.testing.assert_array_equal(represented(X, "R2")[1], [3, 4, 5, 1, 9, 12, 15, 16, 20, 25])
    assert represented(X, "R1").shape == (2, 4)
