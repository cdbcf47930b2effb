"""Masks with the highest expected Dice, IoU or other measure, from maps of probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from argmaxf.expected.dependent import maximize_expected_f_from_mixture
from argmaxf.expected.maximize import maximize_expected_f
from argmaxf.measures import MEASURES, Coefficients, Dice, Measure, Ratio
from argmaxf.question import Question
from argmaxf.torch.keys import FINEST
from argmaxf.torch.rows import Rows, decide, select, value_of
from argmaxf.validation import (
    NotAProbability,
    check_not_negative,
    check_zero_division,
)


@dataclass(frozen=True)
class IoU(Ratio):
    """Intersection over union with a smoothing constant: (T + s) / (k + R + s)."""

    name: ClassVar[str] = "iou"
    smooth: float = 0.0

    @property
    def title(self) -> str:
        """IoU, or IoU (smooth=1)."""
        return f"IoU (smooth={self.smooth:g})" if self.smooth else "IoU"

    def coefficients(self, number: Callable[[float], Any] = float) -> Coefficients:
        """Those of Jaccard, and the constant."""
        s = number(self.smooth)
        return Coefficients(c=number(1), b_in=number(0), b_out=number(1), s0=s, s1=s)


DICE = Dice().coefficients()
SMOOTHED: dict[str, Callable[[float], Ratio]] = {"dice": Dice, "iou": IoU}


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
        ones may be chosen. Infinite if no pixel is chosen. Of an ensemble, the lowest contribution
        (see `JointDecision`).
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
    measure: str | Measure = "dice",
    exclusive: bool = False,
    ensemble: bool = False,
    weights: ArrayLike | None = None,
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
    measure : str or Measure, default="dice"
        What is to be high in each image and class: Dice, which is F1, ``"iou"``, intersection over
        union, or a ratio of `argmaxf.measures` by its name or as an object, such as ``FBeta(2)``.
    exclusive : bool, default=False
        Give each pixel to one class, for the highest mean of the classes' expected Dice, with a
        proven bound. Decided on the CPU by `maximize_expected_f(labels_per_row=1)`, image after
        image: the pixels are copied there. With `include_background=False` a pixel may also stay
        background, which has no value of its own.
    ensemble : bool, default=False
        `probs` has one more axis in front: the members of an ensemble, or the views of test-time
        augmentation. One of them is right, and pixels are independent given which: a mixture, for
        Dice. Decided on the CPU by `maximize_expected_f_from_mixture`, set after set.
    weights : array-like, optional
        One weight for each member of the ensemble; equal by default.
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
    zero = check_zero_division(zero_division)
    question = Question.of(1.0, _measure(measure, smooth), zero)
    if question.coefficients != DICE and (exclusive or ensemble):
        given = f"measure={measure!r}, smooth={smooth!r}"
        name = "exclusive" if exclusive else "ensemble"
        raise ValueError(f"{name}=True is for Dice without smoothing, got {given}")
    if ensemble:
        if exclusive:
            raise ValueError("exclusive=True and ensemble=True cannot be had together")
        return _mixtures(probs, ignore, weights, include_background, zero)
    if weights is not None:
        raise ValueError("weights are for the members of an ensemble: give ensemble=True, too")
    pixels = _pixels(probs, ignore)
    if exclusive:
        return _one_class_each(probs, pixels, ignore, include_background, zero)
    kept = pixels if include_background else pixels[:, 1:]
    rows = kept.reshape(-1, kept.shape[2])
    try:
        found, masks = (
            _decide_by_numpy(rows, question) if by_numpy(rows) else _decide(rows, question)
        )
    except (NotAProbability, ValueError):
        raise _first_bad(probs, ignore) from None
    return _shaped(probs, kept, found, masks)


def by_numpy(rows: Tensor) -> bool:
    """Whether the compiled loops for arrays can have the rows."""
    return rows.device.type == "cpu"


def _decide_by_numpy(rows: Tensor, question: Question) -> tuple[Rows, Tensor]:
    """Decide rows on the CPU as arrays."""
    options: Any = {"measure": question.measure, "zero_division": question.zero_division}
    found = maximize_expected_f(rows, average="samples", **options)
    ties = torch.zeros_like(found.k)
    return Rows(found.k, found.expected, found.std, found.threshold, ties, ties), found.selected


def _decide(rows: Tensor, question: Question) -> tuple[Rows, Tensor]:
    """Decide rows where they are."""
    found = decide(rows, question.coefficients, question.zero_division)
    return found, select(rows, found)


def _measure(measure: str | Measure, smooth: float) -> str | Measure:
    """Return a measure with its smoothing constant."""
    s = check_not_negative("smooth", smooth)
    if isinstance(measure, str) and measure in SMOOTHED:
        return SMOOTHED[measure](s)
    if isinstance(measure, str) and measure not in MEASURES:
        names = ", ".join(map(repr, dict.fromkeys([*SMOOTHED, *MEASURES])))
        raise ValueError(f"measure must be one of {names}, or a Measure; got {measure!r}")
    if s > 0.0:
        raise ValueError(f"smooth is for 'dice' and 'iou', got smooth={smooth!r} for {measure!r}")
    return measure


def _mixtures(
    probs: Tensor, ignore: Tensor | None, weights: ArrayLike | None, background: bool, zero: float
) -> Segmentation:
    """Decide each image × class under a mixture of the ensemble's members."""
    if not isinstance(probs, Tensor) or probs.dim() < 4:
        shape = tuple(getattr(probs, "shape", ()))
        raise ValueError(f"probs must be members × batch × classes × pixels, got shape {shape}")
    members = torch.stack([_pixels(member, ignore) for member in probs])
    kept = members if background else members[:, :, 1:]
    sets = kept.flatten(1, 2).transpose(0, 1).double().cpu().numpy()
    if not bool(((members >= 0.0) & (members <= 1.0)).all()):
        raise _first_bad(members, None)
    found = [
        maximize_expected_f_from_mixture(each, weights=weights, zero_division=zero) for each in sets
    ]
    device = probs.device
    names = ("k", "expected", "std", "threshold")
    k, mean, std, lowest = (
        torch.from_numpy(np.array([getattr(each, name) for each in found])).to(device)
        for name in names
    )
    chosen = torch.from_numpy(np.stack([each.selected for each in found])).to(device)
    return _shaped(probs[0], kept[0], Rows(k, mean, std, lowest, k, k), chosen)


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
    mean, std = value_of(rows, chosen, DICE, zero)
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
