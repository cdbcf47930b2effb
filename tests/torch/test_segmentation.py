"""Segmentation on the CPU: the decision of every image × class is that of NumPy."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argmaxf import (
    expected_f,
    maximize_expected_f,
    maximize_expected_f_from_mixture,
    maximize_expected_macro_f,
)
from argmaxf.expected import band
from argmaxf.measures import MCC, Dice, FBeta, Jaccard, Tversky
from argmaxf.problem import Problem
from tests.judges import curve_40_digits, definition, families, jaccard

torch = pytest.importorskip("torch")

from argmaxf import torch as for_torch  # noqa: E402
from argmaxf.torch import exclusive, tensors  # noqa: E402
from argmaxf.torch.tensors import best_masks, mask_values, node_sums, reciprocals  # noqa: E402
from tests.torch import plain_kernels  # noqa: E402

torch.set_num_threads(1)  # the maps are small, and threads of a busy machine wait for each other


@pytest.fixture(autouse=True, params=["passes"])
def way(request, monkeypatch):
    """Classes and ensembles on the CPU are decided as arrays: here as on a GPU, too."""
    if request.param == "passes":
        monkeypatch.setattr(tensors, "has_triton", lambda pixels: True)
        monkeypatch.setattr(tensors, "kernels", lambda: plain_kernels)
        monkeypatch.setattr(exclusive, "SMALL", 0)


def segment(p, **options):
    """Rows of pixels need no more than one axis here."""
    flat = isinstance(p, torch.Tensor) and p.dim() == 3 + options.get("ensemble", False)
    return for_torch.segment(p, **({"spatial_dims": 1} if flat else {}), **options)


NAMES = {"dice": "fbeta", "iou": "jaccard"}
TYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def maps(seed=0):
    """Maps of many kinds: batch × classes × pixels."""
    rng = np.random.default_rng(seed)
    return {
        "blob": torch.sigmoid(torch.from_numpy(3 * rng.standard_normal((2, 2, 40, 50)) - 4)),
        "softmax": torch.softmax(torch.from_numpy(4 * rng.standard_normal((1, 4, 33, 31))), 1),
        "uniform": torch.from_numpy(rng.random((1, 2, 5_000))),
        "absent": torch.from_numpy(rng.random((1, 2, 2_000)) * 1e-6),
        "8-bit": torch.from_numpy(rng.integers(0, 256, (1, 2, 4_000)) / 255),
        "one value": torch.full((1, 1, 3_000), 0.3, dtype=torch.float64),
        "zeros and ones": torch.from_numpy(rng.integers(0, 2, (1, 2, 500)).astype(float)),
        "nothing": torch.zeros(1, 2, 500, dtype=torch.float64),
        "above a flat rest": torch.from_numpy(
            np.where(np.arange(20_000) < 20, rng.random((1, 1, 20_000)), 1e-4)
        ),
        "two clusters": torch.from_numpy(
            np.concatenate([rng.beta(50, 5, (1, 1, 400)), rng.beta(1, 500, (1, 1, 3_000))], 2)
        ),
        "small": torch.from_numpy(rng.beta(0.5, 5, (4, 2, 3, 5))),
    }


def by_numpy(p, measure="dice", **options):
    flat = p.double().flatten(2).flatten(0, 1).numpy()
    return maximize_expected_f(
        flat, measure=NAMES.get(measure, measure), average="samples", **options
    )


def same_decision(found, truth, shape):
    assert found.k.flatten().tolist() == truth.k.tolist()
    assert found.threshold.flatten().tolist() == truth.threshold.tolist()
    np.testing.assert_array_equal(found.masks.flatten(2).flatten(0, 1).numpy(), truth.selected)
    assert found.masks.shape == shape
    np.testing.assert_allclose(found.expected.flatten(), truth.expected, rtol=1e-12)
    np.testing.assert_allclose(found.std.flatten(), truth.std, rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("way", ["passes", "arrays"], indirect=True)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", maps())
def test_every_image_and_class_is_decided_as_by_numpy(name, dtype):
    p = maps()[name].to(dtype)
    same_decision(segment(p), by_numpy(p), p.shape)


@pytest.mark.parametrize(
    "name", ["blob", "softmax", "absent", "8-bit", "zeros and ones", "two clusters", "small"]
)
def test_iou_and_empty_images_as_by_numpy(name):
    p = maps()[name].float()
    same_decision(segment(p, measure="iou"), by_numpy(p, "iou"), p.shape)
    truth = by_numpy(p, zero_division=1.0)
    same_decision(segment(p, zero_division=1.0), truth, p.shape)


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.7, 1.0]), min_size=1, max_size=8),
    st.sampled_from([0.0, 0.3, 1.0, 4.0]),
    st.sampled_from(["dice", "iou"]),
)
@settings(max_examples=40)
def test_smoothing_is_the_best_over_all_sets_of_a_size(p, smooth, measure):
    """Judged by the sum over all label vectors, every k tried."""
    p = np.array(p)
    order = np.argsort(-p, kind="stable")
    truth = []
    for k in range(len(p) + 1):
        chosen = np.zeros(len(p), bool)
        chosen[order[:k]] = True
        truth.append(smoothed(p, chosen, smooth, measure))
    found = segment(torch.from_numpy(p)[None, None], measure=measure, smooth=smooth)
    assert found.expected.item() == pytest.approx(max(truth), rel=1e-12, abs=1e-300)
    assert truth[found.k.item()] == pytest.approx(max(truth), rel=1e-12, abs=1e-300)


def smoothed(p, chosen, smooth, measure):
    """E[(c T + s) / (… + s)] by the definition."""
    total, k = 0.0, int(chosen.sum())
    for bits in range(1 << len(p)):
        y = np.array([bits >> i & 1 for i in range(len(p))], bool)
        mass = np.prod(np.where(y, p, 1 - p))
        t, s = (y & chosen).sum(), y.sum()
        up, down = (2 * t, k + s) if measure == "dice" else (t, k + s - t)
        total += mass * ((up + smooth) / (down + smooth) if down + smooth else 0.0)
    return total


@pytest.mark.parametrize("name", families())
def test_small_sets_equal_40_digit_arithmetic(name):
    p = families()[name]
    truth = curve_40_digits(p)
    found = segment(torch.from_numpy(p)[None, None])
    assert float(abs(truth[found.k.item()] / max(truth) - 1)) < 1e-13
    assert abs(found.expected.item() / max(truth) - 1) < 1e-12


def test_the_spread_is_that_of_the_definition():
    p = torch.tensor([[[0.9, 0.5, 0.4, 0.4, 0.1]]], dtype=torch.float64)
    for measure in NAMES:
        found = segment(p, measure=measure)
        truth = definition(
            p[0, 0], found.masks[0, 0], formula=jaccard if measure == "iou" else None
        )
        assert found.std.item() == pytest.approx(float(truth[1]), rel=1e-12)


@pytest.mark.parametrize("measure", ["dice", "iou"])
def test_the_value_of_any_masks_is_that_of_numpy(measure):
    p = maps()["blob"].float().flatten(2).flatten(0, 1)
    masks = torch.rand(p.shape, generator=torch.Generator().manual_seed(2)) < p + 0.1
    masks[0] = False
    for zero in (0.0, 1.0):
        mean, std = mask_values(p, masks, Problem.of(measure=NAMES[measure], zero_division=zero))
        for row in range(len(p)):
            options = {"measure": NAMES[measure], "zero_division": zero}
            truth = expected_f(p[row].numpy(), masks[row].numpy(), **options)
            assert mean[row].item() == pytest.approx(truth.mean, rel=1e-12)
            assert std[row].item() == pytest.approx(truth.std, rel=1e-8)


def test_of_equal_pixels_the_first_are_chosen():
    p = torch.full((1, 1, 3_000), 0.3)
    p[0, 0, :700] = 0.0
    found = segment(p)
    chosen = found.masks[0, 0].nonzero()[:, 0]
    assert chosen.tolist() == list(range(700, 700 + found.k.item()))


def test_ignored_pixels_count_nowhere():
    p = maps()["blob"].float()
    ignore = torch.rand(2, 40, 50, generator=torch.Generator().manual_seed(1)) < 0.3
    spoilt = torch.where(ignore[:, None], torch.nan, p)
    found = segment(spoilt, ignore=ignore)
    assert not (found.masks & ignore[:, None]).any()
    for image in range(2):
        kept = p[image][:, ~ignore[image]]
        truth = by_numpy(kept[None])
        assert found.k[image].tolist() == truth.k.tolist()
        np.testing.assert_allclose(found.expected[image], truth.expected, rtol=1e-12)
    whole = segment(p, ignore=ignore[:, None].expand_as(p))
    assert torch.equal(whole.masks, found.masks)


def test_background_left_out_changes_no_other_class():
    p = maps()["softmax"].float()
    found, every = segment(p, include_background=False), segment(p)
    assert torch.equal(found.masks[:, 1:], every.masks[:, 1:])
    assert not found.masks[:, 0].any()
    assert found.expected[:, 0].isnan().all()
    assert found.k[:, 0].tolist() == [0]
    assert found.mean.item() == pytest.approx(every.expected[0, 1:].mean().item())


@pytest.mark.parametrize("way", ["passes", "arrays"], indirect=True)
def test_exclusive_classes_are_the_shared_rows_decision_with_its_bound():
    p = maps()["softmax"].float()[..., :9, :8]
    found = segment(p, exclusive=True)
    cells = p[0].flatten(1).T.double().numpy()
    truth = maximize_expected_macro_f(cells, labels_per_row=1)
    assert found.labels.flatten().tolist() == truth.selected.argmax(1).tolist()
    assert found.mean.item() == pytest.approx(truth.expected, rel=1e-12)
    assert found.bound.item() >= truth.expected * (1 - 1e-12)
    assert found.bound.item() <= truth.expected * (1 + 1e-6)
    assert (found.masks.sum(1) == 1).all()
    argmax = torch.nn.functional.one_hot(p.argmax(1), 4).movedim(-1, 1).bool()
    flat = p.flatten(2).flatten(0, 1)
    plain = mask_values(flat, argmax.flatten(2).flatten(0, 1), Problem.of())[0]
    assert found.mean.item() >= plain.mean().item()
    ignore = torch.zeros(1, 9, 8, dtype=torch.bool)
    ignore[0, :2] = True
    some = segment(p, exclusive=True, ignore=ignore, include_background=False)
    assert (some.labels[ignore] == -1).all()
    assert some.labels[~ignore].min() >= 0
    assert not some.masks[:, 0].any()


@pytest.mark.parametrize("zero", [0.0, 1.0])
@pytest.mark.parametrize("background", [True, False])
def test_many_pixels_of_exclusive_classes_are_proven_by_passes(monkeypatch, background, zero):
    """Not by the decision for arrays, whose value and bound judge the others."""
    rng = np.random.default_rng(11)
    p = torch.from_numpy(rng.dirichlet([1.0, 0.5, 0.2], 6_000).T[None].copy())
    options = {"exclusive": True, "include_background": background, "zero_division": zero}
    found = segment(p, tol=1e-5, **options)
    with monkeypatch.context() as patched:
        patched.setattr(exclusive, "decide_image", lambda *given: None)
        truth = segment(p, tol=1e-7, **options)
    monkeypatch.setattr(exclusive, "_decide_array", None)
    again = segment(p, tol=1e-5, **options)
    assert torch.equal(again.labels, found.labels)
    assert found.mean.item() == pytest.approx(truth.mean.item(), rel=1e-5)
    assert truth.mean.item() <= found.bound.item() <= found.mean.item() * (1 + 1e-5)


@pytest.mark.parametrize("way", ["passes", "arrays"], indirect=True)
def test_exclusive_classes_that_are_worth_more_empty_are_emptied():
    """The closed forms: an empty mask is worth P(S = 0), all pixels of a class none is of, 0."""
    p = torch.full((1, 3, 5), 0.02, dtype=torch.float64)
    found = segment(p, exclusive=True, include_background=False, zero_division=1.0)
    assert found.k.tolist() == [[0, 0, 0]]
    assert found.mean.item() == pytest.approx(0.98**5, rel=1e-12)
    assert found.bound.item() == pytest.approx(0.98**5, rel=1e-6)
    found = segment(1e-9 * p, exclusive=True, zero_division=1.0)
    assert sorted(found.k[0].tolist()) == [0, 0, 5]
    assert found.mean.item() == pytest.approx(2 / 3, rel=1e-6)


@pytest.mark.parametrize("way", ["passes", "arrays"], indirect=True)
def test_one_class_beside_the_background_shares_no_pixels():
    """Its mask is that of the class alone; here no single pixel leads from the largest to it."""
    p = torch.tensor([0.09561088, 0.4035216, 0.99977016, 0.40121934, 0.27548614])
    both = torch.stack([1 - p, p])[None]
    found = segment(both, exclusive=True, include_background=False)
    alone = segment(both, include_background=False)
    assert torch.equal(found.masks, alone.masks)
    assert found.labels.tolist() == found.masks[:, 1].int().tolist()


def test_gradients_volumes_and_strides():
    p = maps()["blob"].float()
    truth = segment(p)
    with_gradient = segment(p.clone().requires_grad_())
    assert torch.equal(with_gradient.masks, truth.masks)
    assert not with_gradient.expected.requires_grad
    volume = p.reshape(2, 2, 10, 8, 25)
    assert torch.equal(segment(volume).masks, truth.masks.reshape(volume.shape))
    channels_last = p.to(memory_format=torch.channels_last)
    assert torch.equal(segment(channels_last).masks, truth.masks)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (float("nan"), r"in \[0, 1\], got nan at position \(0, 1, 7\)$"),
        (3.5, r"got 3.5 at position \(0, 1, 7\); if these are logits"),
        (-1e-3, "got -0.001"),
        (float("inf"), "got inf"),
        (
            1.0 + 1e-6,
            r"got 1\.000.* at position \(0, 1, 7\); if that is rounding, use probs\.clamp\(0, 1\)$",
        ),
    ],
)
def test_what_is_no_probability_is_named(bad, message):
    p = torch.full((1, 2, 3_000), 0.25)
    p[0, 1, 7:] = bad
    with pytest.raises(ValueError, match=message):
        segment(p)


@pytest.mark.parametrize(
    ("p", "options", "message"),
    [
        (
            torch.ones(1, 2, 3, dtype=torch.int64),
            {},
            "floating-point probabilities, got torch.int64",
        ),
        ([[[0.5]]], {}, "got list"),
        ([torch.ones(1, 1, 3)], {"ensemble": True}, "floating-point probabilities, got list"),
        (
            torch.ones(1, 2, 3),
            {"exclusive": True, "ignore": torch.tensor([[[True] * 3, [False] * 3]])},
            "ignore must be the same for all classes where exclusive=True",
        ),
        (
            torch.ones(1, 1, 3).to_sparse(),
            {},
            "a dense tensor of real numbers, got one of layout torch.sparse_coo",
        ),
        (torch.ones(2, 3), {}, r"batch × classes × pixels with two .*, got shape \(2, 3\)"),
        (torch.ones(2, 0, 3), {}, r"must hold pixels, got shape \(2, 0, 3\)"),
        (
            torch.ones(1, 1, 3),
            {"measure": "accuracy"},
            "measure must be one of .*'dice', 'iou'.*; got 'accuracy'",
        ),
        (torch.ones(1, 1, 3), {"exclusive": True, "smooth": 1.0}, "is for Dice without smoothing"),
        (torch.ones(1, 1, 3), {"measure": "mcc"}, "measure must be a ratio .* got MCC"),
        (torch.ones(1, 1, 3), {"measure": MCC()}, "measure must be a ratio .* got MCC"),
        (torch.ones(1, 1, 3), {"measure": Tversky(2, 1)}, r"Tversky: a of at most 1\), got Tv"),
        (torch.ones(1, 1, 3, device="meta"), {}, "must hold numbers, got a tensor of the meta"),
        (torch.ones(1, 1, 1, 3, device="meta"), {"ensemble": True}, "must hold numbers"),
        (torch.ones(1, 1, 3), {"measure": Jaccard(), "smooth": 1.0}, "names 'dice' and 'iou'"),
        (
            torch.tensor([[[torch.nan] * 3, [0.5, 1.5, 0.5]]]),
            {"include_background": False},
            r"got 1.5 at position \(0, 1, 1\)",
        ),
        (
            torch.tensor([[[[torch.nan] * 3, [0.5, 1.5, 0.5]]]]),
            {"include_background": False, "ensemble": True},
            r"got 1.5 at position \(0, 0, 1, 1\)",
        ),
        (
            torch.ones(1, 1, 3),
            {"ignore": torch.zeros(1, 3, dtype=torch.bool).to_sparse()},
            "ignore must be dense and on the device of probs, cpu; got torch.sparse_coo",
        ),
        (
            torch.ones(1, 1, 3),
            {"ignore": torch.zeros(1, 3, dtype=torch.bool, device="meta")},
            "got torch.strided on meta",
        ),
        (torch.ones(1, 1, 3), {"weights": [1]}, "give ensemble=True"),
        (torch.ones(1, 1, 3), {"include_background": False}, "needs a class beside class 0, got 1"),
        (
            torch.ones(1, 1, 3),
            {"ensemble": True},
            "members × batch × classes × pixels with two axes",
        ),
        (2 * torch.ones(1, 1, 1, 3), {"ensemble": True}, r"got 2.0 at position \(0, 0, 0, 0\)"),
        (
            torch.ones(1, 1, 1, 3),
            {"ensemble": True, "smooth": 1.0},
            "is for Dice and IoU without smo",
        ),
        (torch.ones(1, 1, 3), {"smooth": -1}, "smooth must be finite and not negative, got -1"),
        (torch.ones(1, 1, 3), {"zero_division": 2}, r"zero_division must lie in \[0, 1\], got 2"),
        (torch.ones(1, 1, 3), {"ignore": torch.zeros(1, 3)}, "booleans, got torch.float32"),
        (
            torch.ones(1, 2, 3),
            {"ignore": torch.zeros(3, dtype=torch.bool)},
            r"ignore must have shape \(1, 2, 3\), \(1, 3\) or \(1, 1, 3\), got \(3,\)",
        ),
    ],
)
def test_bad_input_is_named(p, options, message):
    with pytest.raises(ValueError, match=message):
        segment(p, **options)


WAYS = [{}, {"exclusive": True}, {"exclusive": True, "include_background": False}]
WAYS += [{"ensemble": True}, {"ensemble": True, "measure": "iou"}]


class NamedTensor(torch.Tensor):
    """A tensor with something to remember, as MONAI's are."""


@pytest.mark.parametrize("way", ["passes", "arrays"], indirect=True)
@pytest.mark.parametrize("options", WAYS, ids=lambda options: "-".join(options) or "each alone")
def test_odd_tensors_are_decided_as_plain_ones(options):
    """Types, strides, gradients, inference mode, one pixel, nothing, all, or all ignored."""
    p = torch.rand(2, 3, 6, 5, generator=torch.Generator().manual_seed(8)).half()
    if "ensemble" in options:
        p = torch.stack([p, p**2])
    truth = segment(p, **options)
    last_axis_first = p.movedim(-1, 0).contiguous().movedim(0, -1)
    negated = torch.complex(p.float(), -p.float()).conj().imag
    named = p.as_subclass(NamedTensor)
    assert negated.is_neg()
    assert type(segment(named, **options).masks) is torch.Tensor
    with torch.inference_mode():
        inferred = p.clone()
        others = [p.float(), p.double(), p.clone().requires_grad_(), last_axis_first, inferred]
        others += [negated, named]
        for other in others:
            assert torch.equal(segment(other, **options).masks, truth.masks)
    single = segment(p[..., :1, :1], **options)
    assert single.masks.shape[-2:] == (1, 1)
    assert not segment(p * 0, **options).expected.nan_to_num().any()
    ones = segment(p * 0 + 1, **options)
    assert ones.k.sum() == (60 if "exclusive" in options else ones.masks.numel())
    ignore = torch.ones(2, 6, 5, dtype=torch.bool)
    assert not segment(p, ignore=ignore, **options).masks.any()


@pytest.mark.parametrize("way", ["passes", "arrays"], indirect=True)
@pytest.mark.parametrize("options", WAYS, ids=lambda options: "-".join(options) or "each alone")
def test_eight_bit_numbers_are_taken_for_what_they_are(options):
    p = torch.rand(2, 3, 6, 5, generator=torch.Generator().manual_seed(9))
    p = torch.stack([p, p**2]) if "ensemble" in options else p
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        small = p.to(dtype)
        found, truth = segment(small, **options), segment(small.float(), **options)
        assert torch.equal(found.masks, truth.masks)
        torch.testing.assert_close(found.expected, truth.expected, rtol=0, atol=0, equal_nan=True)
    with pytest.raises(ValueError, match=r"got 2\.0 at"):
        segment((0 * p + 2).to(torch.float8_e4m3fn), **options)


@pytest.mark.parametrize("options", WAYS, ids=lambda options: "-".join(options) or "each alone")
def test_every_way_names_the_first_bad_pixel(options):
    p = torch.full((2, 3, 6, 5), 0.25)
    p[1, 2, 3, 4] = torch.nan
    place = r"\(1, 2, 3, 4\)"
    if "ensemble" in options:
        p, place = torch.stack([p.nan_to_num(0.5), p]), r"\(1, 1, 2, 3, 4\)"
    with pytest.raises(ValueError, match=f"got nan at position {place}$"):
        segment(p, **options)


STEEP = [Tversky(0.15, 0.1), Tversky(0.4, 16.0), Tversky(0.05, 3.0), Tversky(1.0, 0.02)]


@pytest.mark.parametrize("way", ["passes", "arrays"], indirect=True)
@pytest.mark.parametrize("measure", STEEP, ids=str)
def test_certain_pixels_where_misses_and_false_alarms_weigh_far_from_alike(measure):
    """log Q of a certain pixel goes from -100 outside to -10 inside: no digit may be lost."""
    rng = np.random.default_rng(3)
    p = np.concatenate([np.ones((1, 4)), np.full((1, 290), 1e-6)], 1)
    q = np.concatenate([1 - 10 ** -rng.uniform(1, 17, (1, 9)), rng.random((1, 285)) ** 9], 1)
    p = torch.from_numpy(np.concatenate([p, q]))[None]
    same_decision(segment(p, measure=measure), by_numpy(p, measure), p.shape)


@pytest.mark.parametrize("options", [{"by": [0, 0, 1, 1]}, {"min_selected": 1}], ids=str)
def test_what_only_the_cpu_can_do_is_refused_elsewhere(monkeypatch, options):
    monkeypatch.setattr(tensors, "is_elsewhere", lambda tensor: True)
    with pytest.raises(
        ValueError, match=r"by, confidence_level and limits .* for tensors on the CPU"
    ):
        maximize_expected_f(torch.tensor([0.9, 0.2, 0.3, 0.4]), **options)


def tilt_of(*w):
    w = torch.tensor(w, dtype=torch.float64)
    return w, 1 - w


@pytest.mark.parametrize("way", ["arrays"], indirect=True)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_sums_at_the_nodes_are_those_of_each_pixel(dtype):
    """By powers but for a few pixels, some of which are absent."""
    rng = np.random.default_rng(5)
    p = np.concatenate([rng.beta(0.1, 1, (2, 900)), rng.choice([0, 0.5, 0.499, 1.0], (2, 99))], 1)
    p = torch.from_numpy(p).to(dtype)
    w, x = tilt_of([1e-6, 0.01, 0.5, 0.999], [0.002, 0.003, 0.01, 0.013])
    keep = torch.rand(p.shape, generator=torch.Generator().manual_seed(1)) < 0.7
    given = p.masked_fill(~keep, tensors.ABSENT)
    found = node_sums(given, w.numpy(), x.numpy())
    for r in range(2):
        d = p[r][keep[r]].double()[:, None]
        inverse = 1 / (1 - d * w[r])
        pi, rest = d * x[r] * inverse, (1 - d) * inverse
        truth = [torch.log1p(-d * w[r]).sum(0), pi.sum(0), rest.sum(0), (pi * rest).sum(0)]
        np.testing.assert_allclose(found[r], np.stack(truth), rtol=1e-11)


@pytest.mark.parametrize("way", ["arrays"], indirect=True)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_compiled_reciprocals_are_those_of_plain_torch(dtype):
    p = torch.from_numpy(np.random.default_rng(5).beta(0.1, 1, (2, 900))).to(dtype)
    _, x = tilt_of([1e-6, 0.01, 0.5, 0.999], [0.2, 0.3, 0.75, 1 - 2**-20])
    scale = torch.rand(2, 4, dtype=torch.float64)
    plain = plain_kernels.reciprocals(p, scale, x)
    np.testing.assert_allclose(reciprocals(p, scale, x), plain, rtol=1e-13)


def flat_maps():
    rng = np.random.default_rng(6)
    return {
        "1e-7": np.full((1, 600), 1e-7),
        "1e-3": np.full((1, 6_000), 1e-3),
        "one of two": np.stack([rng.random(2_000), np.full(2_000, 1e-7)]),
        "below a few": np.concatenate([np.full(3, 0.9), np.full(5_997, 0.01)])[None],
        "below many": np.concatenate([np.full(400, 0.02), np.full(12_000, 0.0199)])[None],
        "certain": np.where(rng.random((1, 3_000)) < 0.4, 1.0, rng.random((1, 3_000))),
    }


@pytest.mark.parametrize("measure", ["dice", "iou", FBeta(0.05)], ids=str)
@pytest.mark.parametrize("name", flat_maps())
def test_long_runs_of_equal_pixels(name, measure):
    p = torch.from_numpy(flat_maps()[name]).float()
    for ties in ("split", "together"):
        problem = Problem.of(1.0, NAMES.get(measure, measure), 0.0, ties)
        found = best_masks(p, problem)
        truth = by_numpy(p[None], measure, ties=ties)
        assert found.k.tolist() == truth.k.tolist()
        np.testing.assert_array_equal(found.masks.numpy(), truth.selected)


def many_positives():
    rng = np.random.default_rng(4)
    return {
        "blob": 1 / (1 + np.exp(1 - 3 * rng.standard_normal((2, 20_000)))),
        "8-bit": rng.integers(0, 256, (2, 20_000)) / 255,
        "one value": np.full((1, 12_000), 0.4),
        "nearly certain": np.where(rng.random((1, 12_000)) < 0.5, 1 - 1e-7, 0.3),
        "certain ones": np.where(rng.random((1, 12_000)) < 0.3, 1.0, rng.random((1, 12_000))),
        "two clusters": np.where(rng.random((2, 20_000)) < 0.4, 0.8, 1e-3),
    }


@pytest.mark.parametrize("measure", ["dice", "iou"])
@pytest.mark.parametrize("name", many_positives())
def test_what_is_not_proven_is_decided_otherwise(monkeypatch, name, measure):
    p = torch.from_numpy(many_positives()[name]).float()[None]
    monkeypatch.setattr(band, "is_proven", lambda *given: False)
    same_decision(segment(p, measure=measure), by_numpy(p, measure), p.shape)


def test_two_runs_agree_bit_for_bit():
    p = maps()["two clusters"].float().repeat(2, 2, 3)
    one, other = segment(p), segment(p)
    assert torch.equal(one.expected, other.expected)
    assert torch.equal(one.std, other.std)


@pytest.mark.parametrize("beta", [0.6, 1.0])
def test_with_smoothing_the_empty_set_may_be_better_than_any_in_the_bins(beta):
    p = torch.full((1, 1, 17_246), 0.95 * 2.0**-14, dtype=torch.float64)
    p[0, 0, 5] = 0.999 * 2.0**-14
    measure = FBeta(beta, smooth=1e-6)
    same_decision(segment(p, measure=measure), by_numpy(p, measure), p.shape)


@pytest.mark.parametrize(("p", "smooth"), [(0.35, 1e-18), (0.499800934755782, 1e-14)])
def test_no_smoothing_is_too_little_beside_a_pixel(p, smooth):
    """P(S = 0) is worth more than the pixel: nothing of the smoothing may be lost."""
    found = segment(torch.tensor([[[p]]], dtype=torch.float64), measure="iou", smooth=smooth)
    assert found.k.item() == 0
    assert found.expected.item() == pytest.approx(1 - p, rel=1e-12)


def test_the_empty_set_wins_a_tie():
    found = segment(
        torch.tensor([[[0.5]]], dtype=torch.float64), measure=FBeta(1000), zero_division=1
    )
    assert found.k.item() == 0  # both are worth one half
    assert found.expected.item() == 0.5


def test_torch_is_imported_only_when_asked_for():
    code = "import sys, argmaxf; argmaxf.torch; print('torch' in sys.modules)"
    code += "; argmaxf.torch.segment; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "True"]


def test_a_measure_object_is_its_own_formula():
    p = maps()["blob"]
    for measure, same in [
        (Dice(smooth=2.0), {"measure": "dice", "smooth": 2.0}),
        (Jaccard(), {"measure": "iou"}),
        ("jaccard", {"measure": "iou"}),
    ]:
        found, truth = segment(p, measure=measure), segment(p, **same)
        assert torch.equal(found.k, truth.k)
        assert torch.equal(found.expected, truth.expected)
    flat = p.flatten(2).flatten(0, 1).numpy()
    truth = maximize_expected_f(flat, beta=2.0, average="samples")
    assert segment(p, measure=FBeta(2.0)).k.flatten().tolist() == truth.k.tolist()


@pytest.mark.parametrize("way", ["passes", "arrays"], indirect=True)
@pytest.mark.parametrize("zero", [0.0, 1.0])
def test_an_ensemble_is_a_mixture(zero):
    rng = np.random.default_rng(5)
    p = torch.from_numpy(rng.beta(0.5, 2.0, (3, 2, 2, 6, 5))).float()
    options = {"weights": [2.0, 1.0, 1.0], "zero_division": zero}
    found = segment(p, ensemble=True, include_background=False, **options)
    for image in range(2):
        members = p[:, image, 1].flatten(1).double().numpy()
        truth = maximize_expected_f_from_mixture(members, **options)
        assert found.k[image].tolist() == [0, truth.k]
        np.testing.assert_array_equal(found.masks[image, 1].flatten().numpy(), truth.selected)
        assert found.expected[image, 1].item() == pytest.approx(truth.expected, rel=1e-13)
        assert found.std[image, 1].item() == pytest.approx(truth.std, rel=1e-12)
        assert found.threshold[image, 1].item() == pytest.approx(truth.threshold, rel=1e-12)
    same = segment(p[:1].expand(3, 2, 2, 6, 5), ensemble=True)  # members that agree
    assert torch.equal(same.masks, segment(p[0]).masks)


def mixture_iou(p, weights):
    """The expected IoU of every mask, by the sum over all label vectors."""
    labels = np.array(list(itertools.product([False, True], repeat=p.shape[1])))
    mass = sum(w * np.where(labels, q, 1 - q).prod(1) for w, q in zip(weights, p, strict=True))
    both = (labels[:, None] & labels).sum(2)
    either = (labels[:, None] | labels).sum(2)
    return labels, (both / np.maximum(either, 1)) @ mass


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_the_iou_of_an_ensemble_is_bounded_and_no_pixel_betters_it(seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.5, 1.0, (rng.integers(1, 4), rng.integers(1, 7))).round(2)
    weights = rng.integers(1, 4, len(p)) / 1.0
    labels, values = mixture_iou(p, weights / weights.sum())
    maps = torch.from_numpy(p)[:, None, None]
    found = segment(maps, ensemble=True, measure="iou", weights=weights)
    mask = found.masks.flatten().numpy()
    assert values[(labels == mask).all(1)] == pytest.approx(found.expected.item(), rel=1e-12)
    assert found.bound.item() >= values.max() * (1 - 1e-12)
    one_pixel_away = (labels != mask).sum(1) <= 1
    assert found.expected.item() >= values[one_pixel_away].max() * (1 - 1e-11)


@pytest.mark.parametrize("way", ["passes", "arrays"], indirect=True)
@pytest.mark.parametrize("certain", [0, 1])
def test_pixels_known_for_certain_do_not_loosen_the_bound_of_iou(certain):
    """Pixels that all members are certain of add what is known: the gap is that of the others."""
    rng = np.random.default_rng(3)
    open_pixels = torch.from_numpy(rng.beta(2.0, 2.0, (1, 1, 1, 300)))
    members = torch.cat([open_pixels, open_pixels.clamp(0.05, 0.95)])
    known = torch.full((2, 1, 1, 700), float(certain), dtype=torch.float64)
    found = segment(torch.cat([members, known], -1), ensemble=True, measure="iou")
    assert found.expected.item() <= found.bound.item() <= found.expected.item() * 1.01
    everything = segment(known + 1 - certain, ensemble=True, measure="iou")
    assert everything.expected.item() == pytest.approx(1.0, rel=1e-12)
    assert everything.bound.item() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_the_functions_for_arrays_answer_tensors_with_tensors(dtype):
    p = maps()["blob"][0].flatten(1).to(dtype).requires_grad_()
    exact = p.detach().double().numpy()
    for tensor, array, options in [
        (p[0], exact[0], {"beta": 2.0}),
        (p[0], exact[0], {"max_selected": 3}),
        (p, exact, {"average": "samples", "measure": "jaccard"}),
        (p, exact, {"average": "macro", "zero_division": 1.0}),
        (p, exact, {"average": "micro", "ties": "together"}),
        (p.T[:50], exact.T[:50], {"labels_per_row": 1}),
    ]:
        decide = maximize_expected_macro_f if "labels_per_row" in options else maximize_expected_f
        found, truth = (decide(each, **options) for each in (tensor, array))
        assert torch.equal(found.selected, torch.from_numpy(truth.selected))
        for name in ("k", "threshold", "expected", "std"):
            value = getattr(found, name)
            assert isinstance(value, torch.Tensor)
            assert value.tolist() == np.asarray(getattr(truth, name)).tolist()
    mean, std = expected_f(p[0], p[0] > 0.5)
    assert (mean.item(), std.item()) == expected_f(exact[0], exact[0] > 0.5)


def test_tensors_elsewhere_are_decided_in_place(monkeypatch):
    """The way of tensors on a GPU, taken on the CPU."""
    monkeypatch.setattr(tensors, "is_elsewhere", lambda tensor: True)
    p = maps()["8-bit"][0].float()
    exact = p.double().numpy()
    for average, tensor, array in [
        (None, p[0], exact[0]),
        ("samples", p, exact),
        ("macro", p[:, :40], exact[:, :40]),
        ("micro", p, exact),
    ]:
        for options in ({}, {"ties": "together", "measure": "jaccard"}, {"zero_division": 1.0}):
            options = options if average is None else {**options, "average": average}
            found = maximize_expected_f(tensor, **options)
            truth = maximize_expected_f(array, **options)
            assert torch.equal(found.selected, torch.from_numpy(truth.selected))
            assert found.k.tolist() == np.asarray(truth.k).tolist()
            np.testing.assert_allclose(found.expected, truth.expected, rtol=1e-12)
    mean, std = expected_f(p[0], (p[0] > 0.5).int())
    np.testing.assert_allclose((mean, std), expected_f(exact[0], exact[0] > 0.5), rtol=1e-10)
    with pytest.raises(ValueError, match=r"are for tensors on the CPU, got one on cpu"):
        maximize_expected_f(p[0], max_selected=3)
    with pytest.raises(ValueError, match=r"in \[0, 1\], got nan at position \(1, 2\)"):
        maximize_expected_f(torch.tensor([[0.5, 0.1, 0.2], [0, 1, torch.nan]]), average="micro")
    with pytest.raises(ValueError, match="zeros and ones"):
        expected_f(p[0], 3 * torch.ones_like(p[0]))
