"""Logits, single images, calibration by temperature, and the recipes that need no other package."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from argmaxf.torch import calibrate_temperature, segment  # noqa: E402


def logits(*shape, seed=0):
    return 2 * torch.randn(shape, generator=torch.Generator().manual_seed(seed)) - 1


@pytest.mark.parametrize("options", [{}, {"exclusive": True}, {"ensemble": True}], ids=str)
def test_logits_are_turned_into_probabilities(options):
    z = logits(2, 2, 3, 8, 9) if "ensemble" in options else logits(2, 3, 8, 9)
    axis = 2 if "ensemble" in options else 1
    for name, p in {"sigmoid": z.sigmoid(), "softmax": z.softmax(axis)}.items():
        found, truth = segment(z, from_logits=name, **options), segment(p, **options)
        assert torch.equal(found.masks, truth.masks)
        np.testing.assert_allclose(found.expected, truth.expected, rtol=1e-13)


def test_logits_of_half_precision_keep_their_digits():
    z = logits(1, 2, 8, 9).half()
    found = segment(z, from_logits="sigmoid")
    truth = segment(z.float().sigmoid())
    assert torch.equal(found.masks, truth.masks)
    np.testing.assert_allclose(found.expected, truth.expected, rtol=1e-13)


def test_logits_that_are_not_finite_are_named():
    z = logits(1, 3, 4, 4)
    z[0, 1, 2, 3] = torch.nan
    with pytest.raises(ValueError, match=r"finite logits, got nan at position \(0, 1, 2, 3\)$"):
        segment(z, from_logits="sigmoid")
    z[0, 1, 2, 3] = torch.inf
    with pytest.raises(ValueError, match=r"finite logits, got -?[\d.]+ at|finite logits, got inf"):
        segment(z, from_logits="softmax")
    assert segment(z, from_logits="sigmoid").masks[0, 1, 2, 3]
    with pytest.raises(ValueError, match="softmax' needs two classes or more, got 1"):
        segment(z[:, :1], from_logits="softmax")
    with pytest.raises(ValueError, match="from_logits must be"):
        segment(z, from_logits="tanh")


def test_a_single_image_is_refused_or_asked_for():
    p = logits(3, 8, 9).sigmoid()
    with pytest.raises(ValueError, match=r"got shape \(3, 8, 9\); give spatial_dims=2 for one"):
        segment(p)
    ignore = torch.zeros(8, 9, dtype=torch.bool)
    ignore[:2] = True
    for options in ({}, {"exclusive": True}, {"ignore": ignore}, {"include_background": False}):
        batch = {**options, **({"ignore": ignore[None]} if "ignore" in options else {})}
        found, truth = segment(p, spatial_dims=2, **options), segment(p[None], **batch)
        assert found.masks.shape == p.shape
        for name in ("masks", "expected", "std", "k", "threshold", "labels", "bound", "mean"):
            one, other = getattr(found, name), getattr(truth, name)
            if other is not None:
                torch.testing.assert_close(one, other[0], rtol=1e-13, atol=0, equal_nan=True)
    with pytest.raises(ValueError, match=r"ignore must have shape \(3, 8, 9\), \(8, 9\) or \(1, "):
        segment(p, spatial_dims=2, ignore=ignore[:5])


def test_the_number_of_pixel_axes_decides_how_a_tensor_is_read():
    p = logits(2, 3, 4, 5).sigmoid()
    assert segment(p).k.shape == (2, 3)
    volume = segment(p, spatial_dims=3)  # classes × depth × height × width
    assert volume.k.shape == (2,)
    assert segment(p[None], spatial_dims=3).k.tolist() == [volume.k.tolist()]
    assert segment(p.flatten(2), spatial_dims=1).k.shape == (2, 3)
    assert segment(p[:, None], ensemble=True).k.shape == (1, 3)
    assert segment(p, spatial_dims=2, ensemble=True).k.shape == (3,)
    for wrong in (1, 4):
        with pytest.raises(ValueError, match=f"with {wrong} of pixels, got shape"):
            segment(p, spatial_dims=wrong)
    with pytest.raises(ValueError, match="spatial_dims must be"):
        segment(p, spatial_dims=0)


def test_probabilities_that_nnunet_saved(tmp_path):
    """The recipe of docs/segmentation.md: classes × depth × height × width in an .npz file."""
    saved = logits(3, 4, 6, 5).softmax(0)
    np.savez_compressed(tmp_path / "case.npz", probabilities=saved.numpy())
    with np.load(tmp_path / "case.npz") as file:
        probs = torch.from_numpy(file["probabilities"])
    found = segment(probs, spatial_dims=3, exclusive=True)
    assert found.labels.shape == (4, 6, 5)
    assert found.mean <= found.bound


@pytest.mark.parametrize("temperature", [0.4, 1.0, 3.0])
def test_the_temperature_that_made_the_labels_is_found(temperature):
    generator = torch.Generator().manual_seed(1)
    z = logits(4, 3, 60, 60)
    drawn = torch.rand(z.shape, generator=generator) < (z / temperature).sigmoid()
    found = calibrate_temperature(z, drawn)
    assert found.temperature == pytest.approx(temperature, rel=0.03)
    assert found.log_loss <= found.log_loss_before
    assert found.n == z.numel()
    p = (z / temperature).softmax(1).movedim(1, -1)
    classes = torch.multinomial(p.reshape(-1, 3), 1, generator=generator).view(4, 60, 60)
    assert calibrate_temperature(z, classes).temperature == pytest.approx(temperature, rel=0.04)


def test_no_other_temperature_has_a_lower_loss():
    z, generator = logits(1, 4, 20, 20), torch.Generator().manual_seed(2)
    truth = torch.randint(0, 4, (1, 20, 20), generator=generator)
    truth[0, :15] = z.argmax(1)[0, :15]
    found = calibrate_temperature(z, truth)

    def loss(t):
        return torch.nn.functional.cross_entropy(z.double() / t, truth).item()

    assert found.log_loss == pytest.approx(loss(found.temperature), rel=1e-12)
    assert found.log_loss_before == pytest.approx(loss(1.0), rel=1e-12)
    assert found.log_loss <= min(loss(found.temperature * (1 + e)) for e in (-1e-3, 1e-3))
    assert torch.equal(found(z), z / found.temperature)


def test_ignored_pixels_do_not_calibrate():
    z = logits(1, 2, 9, 9)
    truth = (z + logits(1, 2, 9, 9, seed=1)).argmax(1)
    ignore = torch.zeros(1, 9, 9, dtype=torch.bool)
    ignore[0, :3] = True
    spoilt = z.masked_fill(ignore[:, None], torch.nan)
    wrong = truth.masked_fill(ignore, 255)
    found = calibrate_temperature(spoilt, wrong, ignore=ignore)
    truth_found = calibrate_temperature(z[:, :, 3:], truth[:, 3:])
    assert found.temperature == pytest.approx(truth_found.temperature, rel=1e-9)


@pytest.mark.parametrize(
    ("z", "truth", "message"),
    [
        ([1.0], torch.ones(1), "logits must be a tensor, got list"),
        (torch.ones(2, 3), torch.ones(2, 3), "batch × classes × pixels"),
        (torch.ones(1, 2, 3), torch.ones(3), r"truth must have the shape of logits, \(1, 2, 3\)"),
        (torch.ones(1, 2, 3), torch.full((1, 3), 2), "from 0 to 1, got 2; give ignore"),
        (torch.ones(1, 2, 3), torch.full((1, 2, 3), 0.5), "whole numbers from 0 to 1, got 0.5"),
        (torch.full((1, 2, 3), torch.nan), torch.ones(1, 2, 3), "logits must be finite"),
        (torch.ones(1, 1, 3), torch.ones(1, 1, 3), "every pixel is classified correctly"),
        (torch.ones(1, 1, 3), torch.zeros(1, 1, 3), "the logits do not predict the truth"),
    ],
)
def test_what_cannot_be_calibrated_is_named(z, truth, message):
    with pytest.raises(ValueError, match=message):
        calibrate_temperature(z, truth)
