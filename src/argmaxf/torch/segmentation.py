"""Masks with the highest expected Dice, IoU or other measure, from maps of probabilities."""

from __future__ import annotations

from collections.abc import Callable

from numpy.typing import ArrayLike
from torch import Tensor

from argmaxf._base.validation import NotAProbability, check_not_negative, check_zero_division
from argmaxf.measures import MEASURES, Dice, IoU, Measure, Ratio
from argmaxf.problem import Problem
from argmaxf.torch.ensembles import segment_ensemble
from argmaxf.torch.exclusive import segment_exclusively
from argmaxf.torch.pixels import Segmentation, first_bad, kept_of, pixels_of, shaped
from argmaxf.torch.tensors import best_masks

__all__ = ["Segmentation", "segment"]


DICE, IOU = Dice().coefficients(), IoU().coefficients()
SMOOTHED: dict[str, Callable[[float], Ratio]] = {"dice": Dice, "iou": IoU, "jaccard": IoU}


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

    (T true positives, S positives, s = `smooth`) is maximized over k, exactly.
    Everything runs on the device of `probs`, in double precision from the
    exact values of its numbers; gradients are ignored.

    Parameters
    ----------
    probs : Tensor
        Calibrated probabilities (not logits): batch × classes × one or more axes of pixels, of any
        floating type. A single image needs its batch axis: ``probs[None]``.
    measure : str or Measure, default="dice"
        What is to be high in each image and class: Dice, which is F1, ``"iou"``, intersection over
        union, or a ratio of `argmaxf.measures` by its name or as an object, such as ``FBeta(2)``.
    exclusive : bool, default=False
        Give each pixel to one class, for the highest mean of the classes' expected Dice (and no
        other measure), with a proven bound: the decision of
        `maximize_expected_macro_f(labels_per_row=1)`, image after image, where the pixels are. With
        `include_background=False` a pixel may also stay background, which has no value of its own.
    ensemble : bool, default=False
        `probs` has one more axis in front: the members of an ensemble, or the views of test-time
        augmentation, turned back. One of them is right, and pixels are independent given which: a
        mixture, as in `maximize_expected_f_from_mixture`, for Dice and IoU. The best
        Dice is exact; for IoU, of which no exact algorithm is known, there is a proven `bound`.
    weights : array-like, optional
        One weight for each member of the ensemble; equal by default.
    ignore : Tensor, optional
        Booleans, batch × pixels, batch × 1 × pixels or the shape of `probs` (of one member): True
        for pixels that count nowhere; with `exclusive` the same for all classes.
    smooth : float, default=0.0
        Added to numerator and denominator of Dice or IoU; not with `exclusive` or `ensemble`.
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
    A handful of passes over the pixels, of which few are sorted; they stay where they are, but for
    rows that need more than double precision, or of many pixels that look alike, which are copied
    to the CPU. A copy of `probs` is made where it is not contiguous, has 8 bits, or pixels are
    ignored. On CUDA two runs give the same bits.

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
    problem = Problem.of(1.0, _measure(measure, smooth), zero)
    given = f"without smoothing, got measure={measure!r}, smooth={smooth!r}"
    coefficients = problem.coefficients
    if exclusive and coefficients != DICE:
        raise ValueError(f"exclusive=True is for Dice {given}")
    if ensemble:
        if exclusive:
            raise ValueError("exclusive=True and ensemble=True cannot be had together")
        if coefficients not in (DICE, IOU):
            raise ValueError(f"ensemble=True is for Dice and IoU {given}")
        return segment_ensemble(probs, ignore, weights, include_background, problem)
    if weights is not None:
        raise ValueError("weights are for the members of an ensemble: give ensemble=True, too")
    pixels = pixels_of(probs, ignore)
    if exclusive:
        return segment_exclusively(probs, pixels, ignore, include_background, zero)
    kept = kept_of(pixels, include_background)
    rows = kept.reshape(-1, kept.shape[2])
    try:
        values, masks = best_masks(rows, problem)
    except NotAProbability:
        raise first_bad(probs, ignore, None if include_background else 1) from None
    return shaped(probs, kept, masks, *values)


def _measure(measure: str | Measure, smooth: float) -> str | Measure:
    """Return a measure with its smoothing constant."""
    s = check_not_negative("smooth", smooth)
    if isinstance(measure, str) and measure in SMOOTHED:
        return SMOOTHED[measure](s)
    kind = MEASURES.get(measure) if isinstance(measure, str) else type(measure)
    if kind is None or not issubclass(kind, Ratio):
        ratios = (name for name, each in MEASURES.items() if issubclass(each, Ratio))
        names = ", ".join(map(repr, dict.fromkeys([*SMOOTHED, *ratios])))
        raise ValueError(f"measure must be one of {names}, or a Ratio; got {measure!r}")
    if isinstance(measure, Ratio) and measure.tilts_up:
        raise ValueError(
            "a true positive must not lower the denominator of the measure (Tversky: a of at most "
            f"1), got {measure!r}"
        )
    if s > 0.0:
        raise ValueError(
            f"smooth is for the names 'dice' and 'iou', got smooth={smooth!r} for {measure!r}; "
            "Dice(smooth=…) and IoU(smooth=…) have their own"
        )
    return measure
