"""The Triton kernels without a GPU: Triton's interpreter runs them on the CPU."""

import inspect
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from tests import ROOT

torch = pytest.importorskip("torch")
if "triton" not in sys.modules:
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read where kernels are defined
triton = pytest.importorskip("triton")


from argmaxf import maximize_expected_f, maximize_expected_macro_f  # noqa: E402
from argmaxf import torch as for_torch  # noqa: E402
from argmaxf.measures import Tversky  # noqa: E402
from argmaxf.torch import tensors  # noqa: E402

if not triton.knobs.runtime.interpret:
    pytest.skip("triton was imported before its interpreter was asked for", allow_module_level=True)

from argmaxf.torch import triton_rows  # noqa: E402
from tests.torch import plain_kernels  # noqa: E402

torch.set_num_threads(1)
# The interpreter computes what a GPU does in both branches of a `where`, aloud.
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")


@pytest.fixture(autouse=True)
def kernels(monkeypatch):
    """Tensors on the CPU go through the kernels, as long rows do."""
    monkeypatch.setattr(tensors, "has_triton", lambda pixels: True)


def segment(p, **options):
    return for_torch.segment(p, spatial_dims=1, **options)


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


FAST = [("blob", "dice"), ("8-bit", "iou")]  # an interpreted decision takes a second
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


def test_smoothing_and_empty_images():
    p = torch.from_numpy(maps()["blob"])
    truth = maximize_expected_f(p[0].numpy(), average="samples", zero_division=1.0)
    assert segment(p, zero_division=1.0).k[0].tolist() == truth.k.tolist()
    plain = segment(p, smooth=2.0)
    assert (plain.expected > torch.from_numpy(truth.expected)).all()  # smoothing only adds


@pytest.mark.parametrize("measure", ["dice", "iou"])
def test_with_many_positives_as_numpy_does_without_copies(monkeypatch, measure):
    rng = np.random.default_rng(4)
    p = torch.from_numpy(1 / (1 + np.exp(1 - 3 * rng.standard_normal((1, 2, 20_000))))).float()
    name_there = {"dice": "fbeta", "iou": "jaccard"}[measure]
    truth = maximize_expected_f(p[0].double().numpy(), measure=name_there, average="samples")
    monkeypatch.setattr(tensors, "decide_each_row", None)  # rows copied to the CPU
    found = segment(p, measure=measure)
    assert found.k[0].tolist() == truth.k.tolist()
    np.testing.assert_allclose(found.expected[0], truth.expected, rtol=1e-12)
    np.testing.assert_allclose(found.std[0], truth.std, rtol=1e-9)


def test_what_is_no_probability_is_counted():
    p = torch.full((1, 1, 300), 0.25)
    p[0, 0, 7] = torch.nan
    with pytest.raises(ValueError, match=r"got nan at position \(0, 0, 7\)"):
        segment(p)


def test_rows_in_parts(monkeypatch):
    p = torch.from_numpy(np.random.default_rng(3).beta(0.5, 3, (5, 40)))
    truth = maximize_expected_f(p.numpy(), average="samples")
    monkeypatch.setattr(triton_rows, "AT_ONCE", 128)  # two rows at a time
    triton_rows.plan_for.cache_clear()
    found = segment(p[None])
    assert found.k[0].tolist() == truth.k.tolist()
    np.testing.assert_array_equal(found.masks[0].numpy(), truth.selected)


def test_the_first_of_equal_pixels_are_taken():
    p = torch.tensor([[0.9, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.02] * 4]).double()
    truth = maximize_expected_f(p.numpy(), average="samples", measure="f2")
    found = segment(p[None], measure="f2")
    np.testing.assert_array_equal(found.masks[0].numpy(), truth.selected)


def test_sums_over_pixels_are_those_of_plain_torch():
    generator = torch.Generator().manual_seed(3)
    numbers = {"generator": generator, "dtype": torch.float64}
    p, price = torch.rand(2, 1100, **numbers), torch.rand(1100, **numbers)
    scale, x, nu = (torch.rand(2, *shape, **numbers) for shape in ((4, 5), (5,), (5,)))
    for name, given in [
        ("reciprocals", (p, scale[:, 0], x)),
        ("excess", (p, scale, x, price, nu)),
        ("node_sums", (torch.where(p < 0.1, -1.0, p), 1.0 - x, x)),  # -1 is not counted
    ]:
        found, truth = (getattr(each, name)(*given) for each in (triton_rows, plain_kernels))
        np.testing.assert_allclose(found, truth, rtol=1e-11)


def test_classes_and_ensembles_go_through_the_kernels():
    rng = np.random.default_rng(2)
    p = torch.from_numpy(rng.dirichlet([1, 1, 1], 60).T[None].copy())
    truth = maximize_expected_macro_f(p[0].numpy().T, labels_per_row=1)
    found = segment(p, exclusive=True)
    assert found.mean.item() == pytest.approx(truth.expected, rel=1e-6)
    assert found.bound.item() >= truth.expected * (1 - 1e-12)
    same = segment(p[None].expand(2, 1, 3, 60), ensemble=True)  # members that agree
    assert torch.equal(same.masks, segment(p).masks)


def test_every_kernel_compiles_for_a_gpu():
    """The interpreter takes what the compiler refuses, as a name with two types."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.torch.compile_kernels"],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kernels = {line.split()[0] for line in done.stdout.splitlines()}
    launched = re.findall(r"(\w+)\[", inspect.getsource(triton_rows).split("@triton.jit")[0])
    assert kernels == {
        name for name in launched if name.startswith("_") and name in vars(triton_rows)
    }
