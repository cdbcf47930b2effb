"""Masks with the highest expected Dice, IoU or other measure, from maps of probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.torch.keys import FINEST
from argmaxf.torch.rows import Rows, decide, select, value_of
from argmaxf.validation import (
    NotAProbability,
    check_choice,
    check_not_negative,
    check_zero_division,
)

MEASURES = {"dice": (2.0, 1.0, 1.0), "iou": (1.0, 0.0, 1.0)}


@dataclass(frozen=True, eq=False)
class Segmentation:
    """Masks for a batch of images, and what to expect of them.

    Attributes
    ----------
    masks : Tensor
        Booleans in the shape of the probabilities: the pixels of each class.
    labels : Tensor
        With `exclusive`: the class of each pixel, -1 where it is ignored; None otherwise.
    expected : Tensor
        The expected measure of each image × class, in double precision: an estimate of quality that
        needs no labels, as good as the probabilities are calibrated. NaN for a class left out.
    std : Tensor
        The standard deviation of the measure of each image × class under the model.
    k : Tensor
        How many pixels are chosen for each image × class.
    threshold : Tensor
        The lowest chosen probability of each image × class; of pixels equal to it only the first
        ones may be chosen. Infinite if no pixel is chosen.
    bound : Tensor
        With `exclusive`: no labels of an image have a higher expected mean; None otherwise.
    """

    masks: Tensor
    expected: Tensor
    std: Tensor
    k: Tensor
    threshold: Tensor
    labels: Tensor | None = None
    bound: Tensor | None = None

    @property
    def mean(self) -> Tensor:
        """The expected mean over the classes of each image."""
        return self.expected.nanmean(1)


def segment(
    probs: Tensor,
    *,
    measure: str = "dice",
    exclusive: bool = False,
    ignore: Tensor | None = None,
    smooth: float = 0.0,
    include_background: bool = True,
    zero_division: float = 0.0,
) -> Segmentation:
    """Return the masks with the highest expected Dice (or IoU), one for each image × class.

    The pixels of a class are taken for independent given the image; the mask is then the k most
    probable pixels for some k, and::

        E[(2 T_k + s) / (k + S + s)]

    (T true positives, S positives, s = `smooth`) is maximized over k, exactly: bounds show that no
    other k can be better. Everything runs on the device of `probs`, in double precision from the
    exact values of its numbers; gradients are ignored.

    Parameters
    ----------
    probs : Tensor
        Calibrated probabilities (not logits): batch × classes × any number of pixel axes, of any
        floating type.
    measure : {"dice", "iou"}, default="dice"
        What is to be high in each image and class: Dice, which is F1, or intersection over union.
    exclusive : bool, default=False
        Give each pixel to one class, for the highest mean of the classes' expected Dice, with a
        proven bound. Decided on the CPU by `maximize_expected_f(labels_per_row=1)`, image after
        image: the pixels are copied there. With `include_background=False` a pixel may also stay
        background, which has no value of its own.
    ignore : Tensor, optional
        Booleans, batch × pixels or the shape of `probs`: pixels that count nowhere.
    smooth : float, default=0.0
        Added to numerator and denominator of the measure.
    include_background : bool, default=True
        With False class 0 is left out: it gets an empty mask, and NaN instead of a value.
    zero_division : float, default=0.0
        The measure of an image without the class for which nothing is predicted; above 0, empty
        masks compete with others. With `smooth` it is 1 by the formula.

    Returns
    -------
    Segmentation

    Notes
    -----
    A handful of passes over the pixels, without sorting; the pixels stay where they are. Besides
    masks it needs tables of about 100 MB, and a copy of `probs` where it is not contiguous or
    pixels are ignored. On CUDA two runs give the same bits.

    Examples
    --------
    >>> import torch
    >>> probs = torch.tensor([[[[0.1, 0.2, 0.45], [0.4, 0.3, 0.05]]]])
    >>> found = segment(probs)
    >>> found.masks.int()
    tensor([[[[0, 0, 1],
              [1, 1, 0]]]], dtype=torch.int32)
    >>> round(found.expected.item(), 4), found.k.item()
    (0.4634, 3)
    """
    c, b_in, b_out = MEASURES[check_choice("measure", measure, MEASURES)]
    s = check_not_negative("smooth", smooth)
    zero = check_zero_division(zero_division)
    pixels = _pixels(probs, ignore)
    if exclusive:
        if (measure, s) != ("dice", 0.0):
            given = f"measure={measure!r}, smooth={smooth!r}"
            raise ValueError(f"exclusive=True is for Dice without smoothing, got {given}")
        return _one_class_each(probs, pixels, ignore, include_background, zero)
    kept = pixels if include_background else pixels[:, 1:]
    rows = kept.reshape(-1, kept.shape[2])
    try:
        found = decide(rows, (c, b_in, b_out, s, s), zero)
    except NotAProbability:
        raise _first_bad(probs, ignore) from None
    return _shaped(probs, kept, found, select(rows, found))


def _one_class_each(
    probs: Tensor, pixels: Tensor, ignore: Tensor | None, background: bool, zero: float
) -> Segmentation:
    """Give each pixel to one class, or leave it to the background where that has no value."""
    kept = pixels if background else pixels[:, 1:]
    rule: dict[str, Any] = {"labels_per_row" if background else "max_labels_per_row": 1}
    counted = torch.ones_like(kept[:, 0], dtype=torch.bool)
    if ignore is not None:
        counted = ~_mask(ignore, probs).expand_as(probs).flatten(2)[:, 0]
    masks, bound = torch.zeros_like(kept, dtype=torch.bool), []
    for image, where in enumerate(counted):
        cells = kept[image][:, where].T.double().cpu().numpy()
        try:
            found: Any = maximize_expected_f(cells, average="macro", zero_division=zero, **rule)
        except ValueError:
            raise _first_bad(probs, ignore) from None
        masks[image][:, where] = torch.from_numpy(found.selected.T.copy()).to(probs.device)
        bound.append(found.bound)
    rows, chosen = kept.flatten(0, 1), masks.flatten(0, 1)
    mean, std = value_of(rows, chosen, (*MEASURES["dice"], 0.0, 0.0), zero)
    lowest = torch.where(chosen, rows.double(), torch.inf).amin(1)
    ties = torch.zeros_like(mean, dtype=torch.int64)
    answer = _shaped(probs, kept, Rows(chosen.sum(1), mean, std, lowest, ties, ties), chosen)
    labels = masks.long().argmax(1) + (0 if background else masks.any(1).long())
    return replace(
        answer,
        labels=labels.masked_fill(~counted, -1).view(probs.shape[0], *probs.shape[2:]),
        bound=torch.tensor(bound, dtype=torch.float64, device=probs.device),
    )


def _pixels(probs: Tensor, ignore: Tensor | None) -> Tensor:
    """Return batch × classes × pixels; ignored pixels have probability 0, which counts nowhere."""
    if not isinstance(probs, Tensor) or probs.dtype not in FINEST:
        kind = probs.dtype if isinstance(probs, Tensor) else type(probs).__name__
        raise ValueError(f"probs must be a tensor of floating-point probabilities, got {kind}")
    if probs.dim() < 3 or probs.numel() == 0:
        shape = tuple(probs.shape)
        raise ValueError(f"probs must be batch × classes × pixels, none empty; got shape {shape}")
    p = probs.detach()
    if ignore is not None:
        p = p.masked_fill(_mask(ignore, p), 0.0)
    return p.flatten(2).contiguous()


def _mask(ignore: Tensor, p: Tensor) -> Tensor:
    """Return the ignored pixels in a shape that broadcasts to that of the probabilities."""
    if not isinstance(ignore, Tensor) or ignore.dtype != torch.bool:
        kind = ignore.dtype if isinstance(ignore, Tensor) else type(ignore).__name__
        raise ValueError(f"ignore must be a tensor of booleans, got {kind}")
    shapes = tuple(p.shape), (p.shape[0], *p.shape[2:]), (p.shape[0], 1, *p.shape[2:])
    if tuple(ignore.shape) not in shapes:
        raise ValueError(
            f"ignore must have shape {shapes[0]} or {shapes[1]}, got {tuple(ignore.shape)}"
        )
    return ignore.unsqueeze(1) if ignore.dim() < p.dim() else ignore


def _first_bad(probs: Tensor, ignore: Tensor | None) -> ValueError:
    """Describe the first value that is no probability; called once one is known to exist."""
    p = probs.detach()
    bad = ~((p >= 0.0) & (p <= 1.0))
    if ignore is not None:
        bad &= ~_mask(ignore, p)
    place = tuple(bad.nonzero()[0].tolist())
    value = float(p[place])
    hint = "" if value != value else "; are these logits? Use sigmoid or softmax first"
    return ValueError(f"probs must be finite and in [0, 1], got {value!r} at {place}{hint}")


def _shaped(probs: Tensor, kept: Tensor, found: Rows, masks: Tensor) -> Segmentation:
    """Put the rows back into the shape of the images; a class left out has no value."""

    def table(values: Tensor, nothing: Any) -> Tensor:
        values = values.view(kept.shape[:2])
        left_out = probs.shape[1] - kept.shape[1]
        return torch.nn.functional.pad(values, (left_out, 0), value=nothing)

    masks = masks.view(kept.shape)
    if kept.shape[1] < probs.shape[1]:
        masks = torch.cat([torch.zeros_like(masks[:, :1]), masks], 1)
    return Segmentation(
        masks=masks.view(probs.shape),
        expected=table(found.expected, torch.nan),
        std=table(found.std, torch.nan),
        k=table(found.k, 0),
        threshold=table(found.threshold, torch.inf),
    )
