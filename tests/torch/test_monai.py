"""The transforms for MONAI, where it is installed."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("monai")
pytestmark = [
    pytest.mark.slow,  # MONAI takes seconds to import
    pytest.mark.filterwarnings("default"),  # its own warnings are not errors here
]

from argmaxf.torch import segment  # noqa: E402


def logits(*shape):
    from monai.data import MetaTensor

    z = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    return MetaTensor(z, meta={"patient": "one"})


def test_masks_of_one_image():
    from argmaxf.torch.monai import BestMask

    z = logits(3, 8, 9)
    found = BestMask(from_logits="sigmoid", measure="iou")(z)
    truth = segment(z.as_tensor()[None], from_logits="sigmoid", measure="iou")
    assert torch.equal(found.as_tensor(), truth.masks[0].float())
    assert found.meta["patient"] == "one"
    assert torch.equal(
        BestMask(from_logits="sigmoid")(z.numpy()), BestMask(from_logits="sigmoid")(z)
    )
    labels = BestMask(from_logits="softmax", exclusive=True, as_labels=True)(z)
    assert labels.shape == (1, 8, 9)
    with pytest.raises(ValueError, match="as_labels=True needs exclusive=True"):
        BestMask(as_labels=True)


def test_a_compose_is_inverted_through_the_transform():
    from monai.transforms import Compose, Flip, Flipd, Rotate90d

    from argmaxf.torch.monai import BestMask, BestMaskd

    z = logits(2, 6, 7)
    truth = segment(z.as_tensor(), from_logits="sigmoid", spatial_dims=2).masks.float()
    both = Compose([Flip(0), BestMask(from_logits="sigmoid")])
    back = both.inverse(both(z.clone()))
    assert torch.equal(back.as_tensor(), truth)
    assert back.applied_operations == []
    steps = Compose([Rotate90d("pred"), BestMaskd("pred", from_logits="sigmoid"), Flipd("pred", 1)])
    there = steps({"pred": z.clone(), "other": 1})
    assert there["pred"].shape == (2, 7, 6)
    again = steps.inverse(there)
    assert torch.equal(again["pred"].as_tensor(), truth)
    assert again["pred"].applied_operations == []


def test_masks_are_brought_back_to_the_original_image():
    from monai.data import MetaTensor
    from monai.transforms import Compose, Invertd, Spacingd

    from argmaxf.torch.monai import BestMaskd

    before = Compose([Spacingd("image", pixdim=(2.0, 2.0), mode="bilinear")])
    data = before({"image": MetaTensor(torch.rand(1, 16, 16))})
    data["pred"] = logits(2, *data["image"].shape[1:])
    decide = BestMaskd("pred", from_logits="softmax")
    options = {"keys": "pred", "transform": before, "orig_keys": "image"}
    first = Compose([Invertd(**options, nearest_interp=False), decide])(dict(data))
    assert first["pred"].shape == (2, 16, 16)
    last = Compose([decide, Invertd(**options, nearest_interp=True)])(dict(data))
    assert last["pred"].shape == (2, 16, 16)
    assert last["pred"].unique().tolist() == [0.0, 1.0]
