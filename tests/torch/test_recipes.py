"""The recipes of docs/segmentation.md, where their packages are installed."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow  # these packages take seconds to import

from argmaxf import maximize_expected_f  # noqa: E402
from argmaxf.torch import segment  # noqa: E402


def images(channels):
    return torch.rand(2, channels, 32, 32, generator=torch.Generator().manual_seed(0))


def test_monai():
    pytest.importorskip("monai")
    from monai.metrics import DiceMetric
    from monai.networks.nets import BasicUNet

    torch.manual_seed(0)
    unet = BasicUNet(spatial_dims=2, in_channels=1, out_channels=2, features=(4,) * 6)
    masks = segment(torch.sigmoid(unet(images(1)))).masks
    metric = DiceMetric()
    metric(masks.float(), masks.float())
    assert masks.shape == (2, 2, 32, 32)
    assert metric.aggregate().item() == 1.0


def test_segmentation_models_pytorch():
    smp = pytest.importorskip("segmentation_models_pytorch")
    model = smp.Unet("resnet18", encoder_weights=None, classes=2).eval()
    assert segment(torch.sigmoid(model(images(3)))).masks.shape == (2, 2, 32, 32)


def test_transformers():
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_sizes": [8, 8, 8, 8], "depths": [1, 1, 1, 1], "decoder_hidden_size": 8}
    config = transformers.SegformerConfig(num_labels=3, num_attention_heads=[1] * 4, **sizes)
    torch.manual_seed(0)
    segformer = transformers.SegformerForSemanticSegmentation(config).eval()
    pixels = images(3)
    logits = segformer(pixel_values=pixels).logits
    logits = torch.nn.functional.interpolate(logits, size=pixels.shape[-2:], mode="bilinear")
    found = segment(logits.softmax(1), exclusive=True)
    assert found.labels.shape == (2, 32, 32)
    assert (found.mean <= found.bound).all()


def test_saved_probabilities_of_nnunet(tmp_path):
    """The format of `--save_probabilities`: classes × depth × height × width in an .npz file."""
    files = [tmp_path / f"fold_{fold}.npz" for fold in range(2)]
    for seed, name in enumerate(files):
        logits = 2 * np.random.default_rng(seed).standard_normal((3, 4, 16, 16)).astype(np.float16)
        exp = np.exp(logits.astype(np.float32))
        np.savez_compressed(name, probabilities=exp / exp.sum(0))
    probs = torch.from_numpy(np.load(files[0])["probabilities"]).float()
    found = segment(probs, spatial_dims=3, include_background=False)
    assert found.masks.shape == (3, 4, 16, 16)
    assert not found.masks[0].any()
    truth = maximize_expected_f(probs[1].flatten().numpy())
    np.testing.assert_array_equal(found.masks[1].flatten().numpy(), truth.selected)
    folds = [torch.from_numpy(np.load(name)["probabilities"]).float() for name in files]
    both = segment(torch.stack(folds), spatial_dims=3, ensemble=True, include_background=False)
    assert both.masks.shape == (3, 4, 16, 16)
