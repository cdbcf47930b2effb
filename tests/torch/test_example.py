"""The worked page of segmentation, on a few scenes: python examples/segmentation.py FOLDER."""

import importlib.util
import sys

import matplotlib as mpl
import pytest

from tests import ROOT

torch = pytest.importorskip("torch")

PATH = ROOT / "examples" / "segmentation.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("segmentation_example", PATH)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, module)  # dataclasses look there
        spec.loader.exec_module(module)
        yield module


def test_the_example_compares_masks_and_draws_them(example, tmp_path):
    mpl.use("Agg")
    torch.set_num_threads(1)
    found = example.run(tmp_path, sizes=(6, 4, 4), steps=2)
    assert len(found["lines"]) == 2 + len(found["masks"])
    assert {path.name for path in tmp_path.iterdir()} == {
        "segmentation-masks.png",
        "segmentation-labels.png",
    }
    one_each = found["masks"]["exact, one class each"]
    assert one_each.sum(1).max() <= 1


def test_scenes_have_the_classes_where_their_labels_say(example):
    data = example.scenes(20, (0.0, 1.0), seed=5)
    assert data.images.shape == (20, 3, example.SIDE, example.SIDE)
    assert set(data.labels.unique().tolist()) == {0, 1, 2}
    assert torch.equal(data.truth.long().argmax(1), data.labels)


def test_dice_is_that_of_the_definition(example):
    truth = torch.tensor([[[[0, 1, 1, 0]], [[1, 0, 0, 1]], [[0, 0, 0, 0]]]]).bool()
    masks = torch.tensor([[[[0, 0, 0, 0]], [[1, 1, 0, 0]], [[0, 0, 1, 0]]]]).bool()
    score = example.dice(masks, truth)[0]
    assert score[0].item() == 0.5  # one of two found, one of two right
    assert score[1].isnan()  # the class is not there
