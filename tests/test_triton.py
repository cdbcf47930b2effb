"""The Triton kernels without a GPU: Triton's interpreter runs them on the CPU."""

import os
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if "triton" not in sys.modules:
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read where kernels are defined
triton = pytest.importorskip("triton")

from argmaxf import maximize_expected_f  # noqa: E402
from argmaxf.measures import Tversky  # noqa: E402
from argmaxf.question import Question  # noqa: E402
from argmaxf.torch import engine, passes, search, segment, segmentation, tables  # noqa: E402
from argmaxf.torch.form import NodeTilt, State  # noqa: E402
from argmaxf.torch.keys import FINEST, ONE, keys  # noqa: E402
from argmaxf.torch.passes import BinTable  # noqa: E402

if not triton.knobs.runtime.interpret:
    pytest.skip("triton was imported before its interpreter was asked for", allow_module_level=True)

from argmaxf.torch import triton_climb, triton_counts, triton_passes, triton_tables  # noqa: E402

torch.set_num_threads(1)
# The interpreter computes what a GPU does in both branches of a `where`, aloud.
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")


@pytest.fixture(autouse=True)
def kernels(monkeypatch):
    """Tensors on the CPU go through the kernels."""
    backend = engine.Backend(triton_passes, triton_tables, 1 << 20)
    for module in list(sys.modules):
        if module.startswith("argmaxf.torch.") and hasattr(sys.modules[module], "engine_for"):
            monkeypatch.setattr(sys.modules[module], "engine_for", lambda p: backend)
    monkeypatch.setattr(engine, "by_numpy", lambda pixels: False)
    monkeypatch.setattr(search, "LEAST", 1)  # of few pixels, too, some are copied out


def maps():
    rng = np.random.default_rng(7)
    return {
        "blob": 1 / (1 + np.exp(4 - 3 * rng.standard_normal((1, 2, 200)))),
        "8-bit": rng.integers(0, 256, (1, 1, 400)) / 255,
        "one value": np.full((1, 1, 300), 0.3),
        "zeros and ones": rng.integers(0, 2, (1, 1, 200)).astype(float),
        "nothing": np.zeros((1, 1, 50)),
        "absent": rng.random((1, 1, 400)) * 1e-6,
        "small": rng.beta(0.5, 5, (2, 2, 15)),
    }


FAST = [("blob", "dice"), ("8-bit", "iou")]  # an interpreted decision takes a second or two
CASES = [(name, measure) for name in maps() for measure in ("dice", "iou")]


@pytest.mark.parametrize(
    ("name", "measure"),
    [pytest.param(*case, marks=() if case in FAST else pytest.mark.slow) for case in CASES],
)
def test_the_kernels_decide_as_numpy_does(name, measure):
    p = torch.from_numpy(maps()[name]).to(torch.float32 if measure == "dice" else torch.float64)
    rows = p.double().flatten(0, 1).numpy()
    name_there = {"dice": "fbeta", "iou": "jaccard"}[measure]
    truth = maximize_expected_f(rows, measure=name_there, average="samples")
    found = segment(p, measure=measure)
    assert found.k.flatten().tolist() == truth.k.tolist()
    np.testing.assert_array_equal(found.masks.flatten(0, 1).numpy(), truth.selected)
    np.testing.assert_allclose(found.expected.flatten(), truth.expected, rtol=1e-12)
    np.testing.assert_allclose(found.std.flatten(), truth.std, rtol=1e-8, atol=1e-14)


def test_certain_pixels_where_misses_weigh_much_more():
    p = torch.tensor([1.0] * 4 + [1 - 2**-20] * 3 + [1e-6] * 60, dtype=torch.float64)
    for measure in (Tversky(0.4, 16.0), Tversky(0.15, 0.1)):
        truth, found = (
            maximize_expected_f(p.numpy(), measure=measure),
            segment(p[None, None], measure=measure),
        )
        assert found.k.item() == truth.k
        assert found.expected.item() == pytest.approx(truth.expected, rel=1e-12)
        assert found.std.item() == pytest.approx(truth.std, rel=1e-7, abs=1e-14)


@pytest.mark.parametrize("measure", ["dice", "iou", Tversky(0.3, 0.1)], ids=str)
@pytest.mark.parametrize("kind", ["bins", "values", "items"])
def test_bins_that_programs_share_are_bounded_as_by_plain_torch(monkeypatch, measure, kind):
    monkeypatch.setattr(triton_climb, "MOST_PARTS", 4)
    rng = np.random.default_rng(3)
    p = torch.from_numpy(np.sort(rng.beta(0.4, 3.0, (2, 200))).astype(np.float32)).flip(1)
    coefficients = Question.of(1.0, segmentation._measure(measure, 0.0), 0.0).coefficients
    table, bad = passes.table(p, search.first_window(p), FINEST[p.dtype])
    form, reach = tables.prepared(table, coefficients, bad)
    if kind != "bins":
        table = BinTable(torch.ones(2, 200, dtype=torch.int64), keys(p), keys(p))
    log_none = passes.log_products(p, form.outside)
    start = State(torch.zeros(2).double(), torch.zeros_like(form.u), log_none)
    options = {"exact": kind != "bins", "single": kind == "items"}
    found = triton_tables.climb(form, table, start, **options)
    truth = tables.climb(form, table, start, **options)
    np.testing.assert_array_equal(found.k, truth.k)
    useful = (truth.k <= reach[:, None]).numpy()
    np.testing.assert_allclose(found.base, truth.base, rtol=1e-11)
    mine, plain = found.f.numpy()[useful], truth.f.numpy()[useful]
    np.testing.assert_allclose(mine, plain, rtol=1e-11, atol=1e-14)
    if kind == "items":
        return
    useful = useful[:, :-1]
    for mine, plain in zip(found[3:], truth[3:], strict=True):
        mine, plain = mine.numpy()[useful].astype(float), plain.numpy()[useful].astype(float)
        np.testing.assert_allclose(mine, plain, rtol=1e-11, atol=1e-300)


@pytest.mark.slow
def test_smoothing_empty_images_and_few_items_at_a_time(monkeypatch):
    p = torch.from_numpy(maps()["blob"])
    truth = maximize_expected_f(p[0].numpy(), average="samples", zero_division=1.0)
    monkeypatch.setattr(triton_counts, "LEAST_ITEMS", 4)
    monkeypatch.setattr(triton_counts, "MOST_ITEMS", 4)  # closer windows instead
    assert segment(p, zero_division=1.0).k[0].tolist() == truth.k.tolist()
    monkeypatch.undo()
    plain = segment(p, smooth=2.0)
    assert (plain.expected > torch.from_numpy(truth.expected)).all()  # smoothing only adds


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["dice", "iou"])
def test_runs_of_equal_pixels_are_cut_by_the_kernels(monkeypatch, measure):
    """Beside a row that is decided item by item."""
    monkeypatch.setattr(triton_counts, "LEAST_ITEMS", 8)
    monkeypatch.setattr(triton_counts, "MOST_ITEMS", 8)
    monkeypatch.setattr(search, "PIECES", 3)
    monkeypatch.setattr(search, "MOST_PIECES", 24)
    p = np.stack(
        [np.full(90, 1e-7), np.linspace(0, 1, 90), np.r_[np.full(3, 0.9), np.full(87, 0.01)]]
    )
    name_there = {"dice": "fbeta", "iou": "jaccard"}[measure]
    truth = maximize_expected_f(p, measure=name_there, average="samples")
    assert segment(torch.from_numpy(p)[None], measure=measure).k[0].tolist() == truth.k.tolist()


@pytest.mark.parametrize("n", [5, 10_000])
def test_power_sums_are_those_of_plain_torch(n):
    rng = np.random.default_rng(9)
    p = torch.from_numpy(rng.integers(0, 256, (3, n)) / 255).float()
    p[2] = torch.from_numpy(rng.beta(0.1, 3.0, n))
    low = torch.cat([torch.tensor([-1]), keys(p[1:, 3])])
    for high in (torch.full_like(low, ONE), keys(p[:, 1]), keys(p[:, 3])):
        for spread in (True, False):
            found, truth = (way.powers(p, low, high, spread) for way in (triton_passes, passes))
            some = (high >= low if spread else high > low)[:, None]  # else nothing is asked
            np.testing.assert_allclose(found * some, truth * some, rtol=1e-13, atol=1e-300)


def test_what_is_no_probability_is_counted():
    p = torch.full((1, 1, 300), 0.25)
    p[0, 0, 7] = torch.nan
    with pytest.raises(ValueError, match=r"got nan at \(0, 0, 7\)"):
        segment(p)


def test_reciprocals_are_those_of_plain_torch():
    rng = np.random.default_rng(1)
    p = torch.from_numpy(rng.random((2, 700))).float()
    u = torch.from_numpy(rng.random((2, 24)) * 3)
    tilt, scale = NodeTilt(-torch.expm1(-u), (-u).exp()), torch.from_numpy(rng.random((2, 24)))
    found, truth = (way.reciprocals(p, scale, tilt) for way in (triton_passes, passes))
    np.testing.assert_allclose(found, truth, rtol=1e-14)


@pytest.mark.slow
def test_classes_and_ensembles_go_through_the_kernels():
    rng = np.random.default_rng(2)
    p = torch.from_numpy(rng.dirichlet([1, 1, 1], 60).T[None].copy())
    truth = maximize_expected_f(p[0].numpy().T, average="macro", labels_per_row=1)
    found = segment(p, exclusive=True)
    assert found.mean.item() == pytest.approx(truth.expected, rel=1e-6)
    assert found.bound.item() >= truth.expected * (1 - 1e-12)
    same = segment(p[None].expand(2, 1, 3, 60), ensemble=True)  # members that agree
    assert torch.equal(same.masks, segment(p).masks)
