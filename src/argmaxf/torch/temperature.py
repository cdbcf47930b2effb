"""Temperature scaling (Guo et al. 2017): one number that calibrates the logits of a network."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from scipy.optimize import brentq
from torch import Tensor
from torch.nn import functional

from argmaxf._base.shown import Shown

AT_ONCE = 1 << 20  # logits that are looked at together
HIGHEST = 100.0  # temperature that is tried, and one over the lowest


@dataclass(frozen=True)
class TemperatureScaling(Shown):
    """A temperature, and the log loss before and after dividing by it.

    Attributes
    ----------
    temperature : float
        Above 1 for a network that is too sure of itself, below 1 for one that is not sure enough.
    log_loss_before, log_loss : float
        The mean log loss of the held-out pixels with the logits as they are, and divided by the
        temperature. No other temperature has a lower one.
    n : int
        How many pixels, or pixels × classes, were used.

    Examples
    --------
    >>> import torch
    >>> scaling = TemperatureScaling(2.0, log_loss_before=0.7, log_loss=0.4, n=100)
    >>> scaling(torch.tensor([3.0, -1.0]))
    tensor([ 1.5000, -0.5000])
    """

    temperature: float
    log_loss_before: float
    log_loss: float
    n: int

    def __call__(self, logits: Tensor) -> Tensor:
        """Return calibrated logits: ``segment(scaling(logits), from_logits="sigmoid")``."""
        return logits / self.temperature


def calibrate_temperature(
    logits: Tensor, truth: Tensor, *, ignore: Tensor | None = None
) -> TemperatureScaling:
    """Return the temperature with the lowest log loss on held-out images.

    Parameters
    ----------
    logits : Tensor
        Of held-out images, batch × classes × pixels (any number of axes of pixels): before sigmoid
        or softmax.
    truth : Tensor
        In the shape of `logits`, booleans or zeros and ones: classes are independent, as for a
        sigmoid. Or integers, batch × pixels: the class of each pixel, as for a softmax.
    ignore : Tensor, optional
        Booleans in the shape of `truth`: True for pixels that do not count.

    Returns
    -------
    TemperatureScaling

    Notes
    -----
    The log loss is convex in one over the temperature, so the minimum is found to ten digits by
    its derivative, in double precision. Use images the network was not trained on; the temperature
    is between 0.01 and 100.

    Examples
    --------
    >>> logits = torch.tensor([[[[4.0, 4.0, 4.0, -4.0]]]])
    >>> scaling = calibrate_temperature(logits, torch.tensor([[[[1, 1, 0, 0]]]]).bool())
    >>> round(scaling.temperature, 3)  # three of four are right: 4 / log 3
    3.641
    >>> round(scaling.log_loss_before, 3), round(scaling.log_loss, 3)
    (1.018, 0.562)
    """
    z, y = _rows(logits, truth, ignore)

    def parts() -> Iterator[tuple[Tensor, Tensor]]:
        """Yield some logits after others, rows × classes; a sigmoid is a softmax over 0 and z."""
        step = AT_ONCE // (1 if z.dim() == 1 else z.shape[1])
        for part, target in zip(torch.split(z, step), torch.split(y, step), strict=True):
            d = part.double()
            yield d if d.dim() == 2 else torch.stack([torch.zeros_like(d), d], 1), target

    def mean_loss(s: float) -> float:
        """Return the mean log loss at logits times s."""
        losses = [functional.cross_entropy(s * d, t, reduction="sum") for d, t in parts()]
        return float(sum(losses)) / len(z)

    def slope(s: float) -> float:
        """Return its derivative in s."""
        slopes = [((s * d).softmax(1) * (d - d.gather(1, t[:, None]))).sum() for d, t in parts()]
        return float(sum(slopes)) / len(z)

    end = math.log(HIGHEST)
    slopes = [slope(math.exp(t)) for t in (-end, end)]
    if not slopes[0] < 0.0 < slopes[1]:
        why = (
            "every pixel is classified correctly, so the lowest temperature is always the best; "
            "pass more held-out images"
            if slopes[1] <= 0.0
            else "the logits do not predict the truth; check the order of images and classes"
        )
        raise ValueError(f"no temperature between 0.01 and 100 is the best: {why}")
    s = math.exp(brentq(lambda t: slope(math.exp(t)), -end, end, xtol=1e-11))
    return TemperatureScaling(1.0 / s, mean_loss(1.0), mean_loss(s), len(z))


def _rows(logits: Tensor, truth: Tensor, ignore: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the logits that count, and their targets: one for each, or one for each row."""
    given = {"logits": logits, "truth": truth, **({} if ignore is None else {"ignore": ignore})}
    for name, each in given.items():
        if not isinstance(each, Tensor):
            raise ValueError(f"{name} must be a tensor, got {type(each).__name__}")
    shape, without_classes = tuple(logits.shape), (*logits.shape[:1], *logits.shape[2:])
    if len(shape) < 3 or not logits.dtype.is_floating_point:
        raise ValueError(
            "logits must be floating-point numbers, batch × classes × pixels, got "
            f"{logits.dtype} of shape {shape}"
        )
    has_labels = tuple(truth.shape) == without_classes
    if not has_labels and tuple(truth.shape) != shape:
        raise ValueError(
            f"truth must have the shape of logits, {shape}, or be classes of shape "
            f"{without_classes}, got shape {tuple(truth.shape)}"
        )
    if ignore is not None and (ignore.dtype != torch.bool or ignore.shape != truth.shape):
        raise ValueError(
            f"ignore must be booleans in the shape of truth, {tuple(truth.shape)}, got "
            f"{ignore.dtype} of shape {tuple(ignore.shape)}"
        )
    keep = torch.ones_like(truth, dtype=torch.bool) if ignore is None else ~ignore
    z = (logits.movedim(1, -1) if has_labels else logits).detach()[keep]
    y, most = truth[keep], shape[1] - 1 if has_labels else 1
    if len(z) == 0 or not bool(z.isfinite().all()):
        raise ValueError("logits must be finite, and some must count; got NaN, infinity or none")
    wrong = y[(y != y.long()) | (y < 0) | (y > most)]
    if len(wrong):
        raise ValueError(
            f"truth must be whole numbers from 0 to {most}, got {wrong[0].item()!r}; give "
            "ignore=(truth == …) for pixels without a label"
        )
    return z, y.long()
