"""F at the exact best threshold as a metric that is updated batch by batch, like torchmetrics'."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed

from argmaxf._base.validation import check_choice
from argmaxf.empirical.threshold import Threshold, maximize_empirical_f
from argmaxf.measures import MeasureLike, as_measure

__all__ = ["BestFMetric"]


class BestFMetric:
    """The best F over all thresholds, exact, over all batches and processes.

    It has the methods of a metric of torchmetrics: `update`, `compute`, `reset` and `merge_state`.

    Parameters
    ----------
    measure : str, Measure or callable, default="f1"
        What to maximize over the thresholds.
    average : {"macro", "micro"}, optional
        For rows × labels: each label has its own threshold, and F is their mean; or one threshold
        for all cells together. Not given for rows of one label.

    Notes
    -----
    All scores and labels are held, on the CPU: 5 bytes each for float32. Where `torch.distributed`
    runs, `compute` gathers those of all processes, and every process must call it.

    Examples
    --------
    >>> metric = BestFMetric()
    >>> metric.update(torch.tensor([0.1, 0.4, 0.8]), torch.tensor([0, 1, 1]))
    >>> metric.update(torch.tensor([0.5]), torch.tensor([0]))
    >>> round(metric.compute().item(), 4)
    0.8
    >>> metric.best.threshold
    0.25
    """

    def __init__(self, measure: MeasureLike = "f1", *, average: str | None = None) -> None:
        self.measure = as_measure(measure)
        known = ("macro", "micro")
        self.average = None if average is None else check_choice("average", average, known)
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self.batches: list[tuple[Tensor, Tensor]] = []
        self.best: Threshold | None = None

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch.

        Parameters
        ----------
        preds : Tensor
            Scores on any scale, rows or rows × labels; pixels are rows: ``preds.flatten()``.
        target : Tensor
            Booleans or zeros and ones in the same shape.
        """
        if preds.shape != target.shape or preds.dim() != (1 if self.average is None else 2):
            axes = "rows" if self.average is None else "rows × labels"
            raise ValueError(
                f"preds and target must be {axes} for average={self.average!r}, got shapes "
                f"{tuple(preds.shape)} and {tuple(target.shape)}"
            )
        wrong = target[(target != 0) & (target != 1)]
        if len(wrong):
            raise ValueError(f"target must be zeros and ones, got {wrong[0].item()!r}")
        self.batches.append((preds.detach().cpu(), target.detach().cpu().bool()))

    def merge_state(self, other: BestFMetric) -> None:
        """Add the batches of another metric.

        Parameters
        ----------
        other : BestFMetric
            A metric with the same measure and average.
        """
        if (other.measure, other.average) != (self.measure, self.average):
            raise ValueError(
                f"a metric of {other.measure}, average={other.average!r} cannot be added to one of "
                f"{self.measure}, average={self.average!r}"
            )
        self.batches.extend(other.batches)

    def compute(self) -> Tensor:
        """Return the best F of all batches, of all processes; `best` has its threshold.

        Returns
        -------
        Tensor
            One number; with ``average="macro"`` the mean over the labels, `best` has each.
        """
        batches: list[Any] = [self.batches]
        if distributed.is_available() and distributed.is_initialized():
            batches = [None] * distributed.get_world_size()
            distributed.all_gather_object(batches, self.batches)
        pairs = [pair for each in batches for pair in each]
        if not pairs:
            raise ValueError("there is no best F without rows: call update before compute")
        self.best = self._best(pairs)
        return torch.as_tensor(self.best.value, dtype=torch.float64).mean()

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        """Add a batch, and return its own best F."""
        self.update(preds, target)
        return torch.as_tensor(self._best(self.batches[-1:]).value, dtype=torch.float64).mean()

    def _best(self, pairs: list[tuple[Tensor, Tensor]]) -> Threshold:
        """Return the best threshold, or the best ones of all labels."""
        preds, target = (torch.cat(each) for each in zip(*pairs, strict=True))
        options: dict[str, Any] = {"measure": self.measure, "average": self.average}
        return maximize_empirical_f(target.numpy(), preds, **options)
