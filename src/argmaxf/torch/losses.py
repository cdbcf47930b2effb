r"""Soft F as a loss: F_β, Dice, IoU or Tversky with probabilities in the place of decisions.

With T = Σ p y, k = Σ p and S = Σ y, a measure (c T + s0) / (k + (b_in - b_out) T + b_out S + s1)
has the gradient ∂F/∂p_i = (c y_i - F (1 + (b_in - b_out) y_i)) / D, D being its denominator.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from argmaxf._base.validation import check_choice, check_not_negative, check_unit_interval
from argmaxf.measures import MeasureLike, Ratio, as_measure

__all__ = ["SoftFLoss"]

SUMS_OVER = ("batch", "image", "dataset")


class SoftFLoss(torch.nn.Module):
    """1 - soft F, the mean over labels: a loss for networks that are judged by F, Dice or IoU.

    Parameters
    ----------
    measure : str or Measure, default="f1"
        F_β, Dice, IoU or Tversky: ``"f2"``, ``Tversky(0.3, 0.7)``.
    smooth : float, default=0.0
        Added to numerator and denominator, beside the measure's own constant. With a smoothing
        constant labels without a positive have a small loss where little is predicted.
    sums_over : {"batch", "image", "dataset"}, default="batch"
        What one F is made of: the rows (and pixels) of a batch; the pixels of each image; or all
        rows of the training set, by running sums. Small batches hold few positives, and the mean of
        their F is not the F of all of them; running sums avoid that.
    decay : float, default=0.99
        With ``sums_over="dataset"``: how much of the running sums is kept at each batch. 1 / (1 -
        decay) batches, about, make up one F; let them be an epoch or less.
    from_logits : {"sigmoid", "softmax"}, default="sigmoid"
        How logits become probabilities: each label by itself, or one class for each row or pixel.

    Notes
    -----
    Soft F has many local optima and is flat where a network is far off: begin with cross entropy,
    and go on with this loss, or add the two. Probabilities trained by it are not calibrated: use
    `maximize_empirical_f` for a threshold, not a decision by expected F.

    Running sums are changed in training mode only; in evaluation mode the loss is that of a batch.
    They are not part of the state that is saved, and each process of several has its own.

    Examples
    --------
    >>> loss = SoftFLoss("f1")
    >>> logits = torch.tensor([[2.0], [-1.0], [0.0]], requires_grad=True)
    >>> found = loss(logits, torch.tensor([[1], [0], [1]]))
    >>> round(found.item(), 4)
    0.2433
    """

    sums: Tensor

    def __init__(
        self,
        measure: MeasureLike = "f1",
        *,
        smooth: float = 0.0,
        sums_over: str = "batch",
        decay: float = 0.99,
        from_logits: str = "sigmoid",
    ) -> None:
        super().__init__()
        found = as_measure(measure)
        if not isinstance(found, Ratio):
            raise ValueError(
                f"measure must be a ratio of counts such as F, Dice, IoU or Tversky, got {found!r}"
            )
        self.measure = found
        self.smooth = check_not_negative("smooth", smooth)
        self.sums_over = check_choice("sums_over", sums_over, SUMS_OVER)
        self.decay = check_unit_interval("decay", decay)
        self.from_logits = check_choice("from_logits", from_logits, ("sigmoid", "softmax"))
        self.register_buffer("sums", torch.zeros(0), persistent=False)
        self.kept = 0.0  # Σ decay^j over the batches so far

    def reset(self) -> None:
        """Forget the running sums, as at the start of a training."""
        self.sums, self.kept = torch.zeros(0), 0.0

    def forward(self, logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the loss.

        Parameters
        ----------
        logits : Tensor
            Rows, rows × labels, or batch × classes × pixels with any number of axes of pixels.
        targets : Tensor
            In the same shape: booleans, zeros and ones, or probabilities. With ``"softmax"`` also
            the class of each row or pixel.
        mask : Tensor, optional
            Booleans, False for what does not count, such as labels that are not known: in the shape
            of `logits`, or the same for all labels, rows (× pixels).

        Returns
        -------
        Tensor
            One number, between 0 and 1.
        """
        p, y = self._probabilities(logits, targets)
        if mask is not None:
            whole = mask if mask.dim() == p.dim() else mask.unsqueeze(1)
            if mask.dtype != torch.bool or whole.shape not in (p.shape, p[:, :1].shape):
                raise ValueError(
                    f"mask must be booleans of the shape of logits, {tuple(logits.shape)}, or "
                    f"without labels, got {mask.dtype} of shape {tuple(mask.shape)}"
                )
            p, y = p.masked_fill(~whole, 0.0), y.masked_fill(~whole, 0.0)
        axes = [0, *range(2, p.dim())] if self.sums_over != "image" else [*range(2, p.dim())]
        if not axes:
            raise ValueError(f"sums_over='image' needs pixels, got logits of shape {p.shape}")
        batch = torch.stack([(p * y).sum(axes), p.sum(axes), y.sum(axes)])
        if self.sums_over != "dataset" or not self.training:
            above, below = self._fraction(batch)
            return 1.0 - _divided(above, below).mean()
        return self._from_running_sums(batch)

    def _from_running_sums(self, batch: Tensor) -> Tensor:
        """Return 1 - F of the running sums; its gradient is that of F there, for a batch's size."""
        if self.sums.shape != batch.shape:
            self.sums, self.kept = torch.zeros_like(batch), 0.0
        self.sums = self.decay * self.sums.to(batch) + batch.detach()
        self.kept = 1.0 + self.decay * self.kept
        above, below = self._fraction(self.sums / self.kept)
        f = _divided(above, below)
        own_above, own_below = self._fraction(batch)
        change = _divided(own_above - f * own_below, below)
        return (1.0 - f - (change - change.detach())).mean()

    def _fraction(self, sums: Tensor) -> tuple[Tensor, Tensor]:
        """Return numerator and denominator of the measure from T, k and S."""
        t, k, s = sums
        above, below = self.measure.fraction(t, k, s, None)
        return above + self.smooth, below + self.smooth

    def _probabilities(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return probabilities and targets, rows × labels (× pixels), in single precision or so."""
        z = logits.float() if logits.dtype.itemsize < 4 else logits
        z = z[:, None] if z.dim() == 1 else z
        y = targets[:, None] if targets.shape == logits.shape and logits.dim() == 1 else targets
        if self.from_logits == "softmax" and y.shape == (z.shape[0], *z.shape[2:]):
            y = functional.one_hot(y.long(), z.shape[1]).movedim(-1, 1)
        if y.shape != z.shape:
            raise ValueError(
                f"targets must have the shape of logits, {tuple(logits.shape)} (with softmax also "
                f"without the axis of classes), got {tuple(targets.shape)}"
            )
        p = z.sigmoid() if self.from_logits == "sigmoid" else z.softmax(1)
        return p, y.to(p.dtype)


def _divided(above: Tensor, below: Tensor) -> Tensor:
    """Return above / below; 0/0, where nothing counts, is 1: nothing is lost there."""
    none = below == 0.0
    return torch.where(none, 1.0, above / below.masked_fill(none, 1.0))
