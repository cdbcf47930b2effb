"""The recipes of docs/segmentation.md, where their packages are installed."""

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow  # these packages take seconds to import

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
