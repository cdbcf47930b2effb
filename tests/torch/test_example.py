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
    found = example.run(tmp_path, sizes=(10, 6, 4), steps=40, seeds=(1, 2))
    for lines in found.values():
        names = [line.split(" | ")[0][2:] for line in lines[2:]]
        assert {
            "threshold 0.5",
            "tuned threshold",
            "argmax",
            example.EXACT,
            example.ONE_EACH,
        } <= set(names)
        assert all(line.split(" | ")[3].count("/") == 1 for line in lines[2:])
    assert {path.name for path in tmp_path.iterdir()} == {
        "segmentation-masks.png",
        "segmentation-labels.png",
    }


def test_scenes_have_the_classes_where_their_labels_say(example):
    data = example.scenes(20, (0.0, 1.0), seed=5)
    assert data.images.shape == (20, 3, example.SIDE, example.SIDE)
    assert set(data.labels.unique().tolist()) == {0, 1, 2}
    assert torch.equal(data.truth.long().argmax(1), data.labels)


def test_scores_are_those_of_the_definition(example):
    truth = torch.tensor([[[[0, 1, 1, 0]], [[1, 0, 0, 1]], [[0, 0, 0, 0]]]]).bool()
    masks = torch.tensor([[[[0, 0, 0, 0]], [[1, 1, 0, 0]], [[0, 0, 1, 0]]]]).bool()
    for measure, expected in (("dice", 1 / 2), ("iou", 1 / 3)):
        score = example.score(masks, truth, measure)[0]
        assert score[0].item() == pytest.approx(expected)  # one of two found, one of two right
        assert score[1].isnan()  # the class is not there
