"""Soft F as a loss, and the best F as a metric."""

import subprocess
import sys

import numpy as np
import pytest

from argmaxf import maximize_empirical_f
from argmaxf.empirical.soft_f import soft_f
from argmaxf.measures import Dice, FBeta, IoU, Tversky

torch = pytest.importorskip("torch")

from argmaxf.torch.losses import SoftFLoss  # noqa: E402
from argmaxf.torch.metrics import BestFMetric  # noqa: E402

MEASURES = [FBeta(1), FBeta(2, smooth=1.0), Dice(0.5), IoU(1.0), Tversky(0.3, 0.7)]


def batch(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(shape, generator=generator, dtype=torch.float64)
    y = torch.rand(shape, generator=generator) < 0.3
    return z.requires_grad_(), y


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_the_loss_of_one_label_is_soft_f_with_its_closed_gradient(measure):
    z, y = batch(40)
    loss = SoftFLoss(measure)(z, y)
    loss.backward()
    p = torch.sigmoid(z.detach()).numpy()
    value, gradient = soft_f(y.numpy(), p, measure=measure)
    assert loss.item() == pytest.approx(1 - value, rel=1e-12)
    np.testing.assert_allclose(z.grad.numpy(), -gradient * p * (1 - p), rtol=1e-10)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize(
    "options",
    [{}, {"sums_over": "image"}, {"from_logits": "softmax"}, {"smooth": 2.0}],
    ids=str,
)
def test_gradients_are_finite_differences(measure, options):
    z, y = batch(3, 2, 4, 5)
    mask = torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(3)) < 0.8
    loss = SoftFLoss(measure, **options)
    assert torch.autograd.gradcheck(lambda x: loss(x, y, mask), (z,))


def test_labels_are_averaged_and_masked_entries_do_not_count():
    z, y = batch(30, 4)
    loss = SoftFLoss("f2")
    alone = [loss(z[:, j], y[:, j]).item() for j in range(4)]
    assert loss(z, y).item() == pytest.approx(np.mean(alone), rel=1e-12)
    mask = torch.arange(30) < 20
    spoilt = torch.where(mask[:, None], z, 7.0)
    assert loss(spoilt, y, mask).item() == pytest.approx(loss(z[:20], y[:20]).item(), rel=1e-12)
    only = torch.zeros(30, 4, dtype=torch.bool)
    only[:, 1] = True
    found = loss(z, y, only).item()  # labels without entries lose nothing
    assert found == pytest.approx(alone[1] / 4, rel=1e-12)


def test_classes_are_taken_for_one_hot_targets():
    z, _ = batch(2, 3, 5)
    classes = torch.randint(0, 3, (2, 5), generator=torch.Generator().manual_seed(1))
    loss = SoftFLoss("dice", from_logits="softmax")
    hot = torch.nn.functional.one_hot(classes, 3).movedim(-1, 1)
    assert loss(z, classes).item() == loss(z, hot).item()


def test_running_sums_give_the_f_of_all_batches():
    z, y = batch(64)
    loss = SoftFLoss(sums_over="dataset", decay=1.0)
    for part in range(0, 64, 8):
        found = loss(z[part : part + 8], y[part : part + 8])
    whole = SoftFLoss()(z, y)
    assert found.item() == pytest.approx(whole.item(), rel=1e-12)
    # Its gradient is that of F of all rows, for a sum in place of a mean over eight batches
    found.backward()
    (truth,) = torch.autograd.grad(whole, z)
    np.testing.assert_allclose(z.grad[56:], 8 * truth[56:], rtol=1e-10)
    loss.eval()
    assert loss(z[:8], y[:8]).item() == pytest.approx(SoftFLoss()(z[:8], y[:8]).item())
    loss.train().reset()
    assert loss(z[:8], y[:8]).item() == pytest.approx(SoftFLoss()(z[:8], y[:8]).item())


def test_small_batches_with_running_sums_have_the_gradient_of_all_rows():
    """The mean gradient of batches is that of F of all rows; that of F of each batch is not."""
    z, y = batch(800)
    (whole,) = torch.autograd.grad(SoftFLoss()(z, y), z)
    running = SoftFLoss(sums_over="dataset", decay=1.0)
    running(z, y)  # F of all rows is known
    running.decay, running.kept, running.sums = 0.999, 1e6, 1e6 * running.sums / 100.0
    parts = torch.arange(800).split(8)
    error = {}
    for name, loss in {"batch": SoftFLoss(), "dataset": running}.items():
        total = sum(loss(z[rows], y[rows]) for rows in parts) / len(parts)
        (mean,) = torch.autograd.grad(total, z)
        error[name] = float((mean - whole).norm() / whole.norm())
    assert error["dataset"] < 1e-3
    assert error["batch"] > 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "mcc"}, "measure must be a ratio of counts .* got MCC"),
        ({"sums_over": "epoch"}, "sums_over must be"),
        ({"smooth": -1}, "smooth must be finite and not negative"),
        ({"decay": 2}, "decay must"),
        ({"from_logits": None}, "from_logits must be"),
    ],
)
def test_options_of_the_loss_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        SoftFLoss(**options)


def test_shapes_that_do_not_fit_are_named():
    z, y = batch(6, 2)
    with pytest.raises(ValueError, match=r"targets must have the shape of logits, \(6, 2\)"):
        SoftFLoss()(z, y[:, 0])
    with pytest.raises(ValueError, match=r"mask must be booleans of the shape of logits, \(6, 2\)"):
        SoftFLoss()(z, y, y.double())
    with pytest.raises(ValueError, match="sums_over='image' needs pixels"):
        SoftFLoss(sums_over="image")(z, y)


@pytest.mark.parametrize("average", [None, "macro", "micro"])
def test_the_metric_is_the_best_f_of_all_batches(average):
    shape = (90,) if average is None else (90, 3)
    z, y = batch(*shape)
    metric, other = BestFMetric("f2", average=average), BestFMetric("f2", average=average)
    metric.update(z[:40], y[:40])
    other.update(z[40:], y[40:].int())
    metric.merge_state(other)
    truth = maximize_empirical_f(y.numpy(), z.detach().numpy(), measure="f2", average=average)
    assert metric.compute().item() == pytest.approx(np.mean(truth.value), rel=1e-15)
    np.testing.assert_array_equal(metric.best.threshold, truth.threshold)
    own = maximize_empirical_f(y[:7].numpy(), z[:7].detach().numpy(), measure="f2", average=average)
    assert metric(z[:7], y[:7]).item() == pytest.approx(np.mean(own.value), rel=1e-15)
    metric.reset()
    with pytest.raises(ValueError, match="call update before compute"):
        metric.compute()


def test_metrics_that_do_not_fit_are_refused():
    z, y = batch(5)
    with pytest.raises(ValueError, match="must be rows × labels for average='macro'"):
        BestFMetric(average="macro").update(z, y)
    with pytest.raises(ValueError, match=r"target must be zeros and ones, got [23]"):
        BestFMetric().update(z, y + 2)
    with pytest.raises(ValueError, match="cannot be added to one of"):
        BestFMetric("f2").merge_state(BestFMetric())


PROCESS = """
import sys, torch
from argmaxf.torch.metrics import BestFMetric
rank = int(sys.argv[1])
torch.distributed.init_process_group("gloo", init_method=sys.argv[2], rank=rank, world_size=2)
scores, labels = torch.tensor([0.9, 0.2, 0.6, 0.4]), torch.tensor([1, 0, 0, 1])
metric = BestFMetric()
metric.update(scores[2 * rank:][:2 - rank], labels[2 * rank:][:2 - rank])
if rank == 1:
    metric.update(scores[3:], labels[3:])
print(metric.compute().item())
torch.distributed.destroy_process_group()
"""


def test_processes_share_their_rows(tmp_path):
    """Both report the best F of all rows: 2 of 2 positives among 3 selected."""
    if not torch.distributed.is_available():
        pytest.skip("this torch has no distributed")
    file = f"file://{tmp_path / 'together'}"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(rank), file], stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    for process in started:
        out, _ = process.communicate(timeout=120)
        assert float(out) == pytest.approx(0.8)
