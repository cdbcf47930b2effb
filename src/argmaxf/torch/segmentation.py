"""Masks with the highest expected Dice, IoU or other measure, from maps of probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from argmaxf._base.validation import (
    NotAProbability,
    as_weights,
    check_choice,
    check_count,
    check_not_negative,
    ones_unless,
)
from argmaxf.measures import Dice, IoU, Measure, Ratio
from argmaxf.problem import Problem
from argmaxf.torch.ensembles import mixture_masks
from argmaxf.torch.exclusive import assign_classes
from argmaxf.torch.tensors import DICE, IOU, Segmentation, as_floats, best_masks

SMOOTHED: dict[str, Callable[[float], Ratio]] = {"dice": Dice, "iou": IoU, "jaccard": IoU}


def segment(
    probs: Tensor,
    *,
    from_logits: str | None = None,
    spatial_dims: int | None = None,
    measure: str | Measure = "dice",
    exclusive: bool = False,
    ensemble: bool = False,
    weights: ArrayLike | None = None,
    ignore: Tensor | None = None,
    smooth: float = 0.0,
    include_background: bool = True,
    zero_division: float = 0.0,
    tol: float = 1e-5,
) -> Segmentation:
    """Return the masks with the highest expected Dice (or IoU), one for each image and class.

    The pixels of a class are assumed to be independent given the image. The best mask then consists
    of the k most probable pixels for some k. For Dice, its expected value is::

        E[(2 T_k + s) / (k + S + s)]

    with T_k positive pixels in the mask, S positive pixels in all, and s = `smooth`. The k with the
    highest value is found exactly. The computation runs on the device of `probs`, in double
    precision. Gradients are ignored.

    Parameters
    ----------
    probs : Tensor
        Calibrated probabilities: batch × classes × two or more axes of pixels, of any floating
        type.
    from_logits : {"sigmoid", "softmax"}, optional
        Pass logits as `probs`: a sigmoid is applied to each class separately, or a softmax over the
        classes.
    spatial_dims : int, optional
        How many axes of pixels there are: 2 for images, 3 for volumes, 1 for rows of pixels. If it
        is given, `probs` may have no batch axis, and the result has none either. It is required if
        `probs` has three axes, which could be classes × height × width or batch × classes × pixels.
    measure : str or Measure, default="dice"
        What to maximize in each image and class: Dice, which is F1, ``"iou"`` (intersection over
        union), or a ratio of `argmaxf.measures` as a name, such as ``"f2"``, or as an object.
    exclusive : bool, default=False
        Assign each pixel to one class, with the highest mean of the classes' expected Dice (no
        other measure) and a proven `bound`. It is the decision of
        `maximize_expected_macro_f(labels_per_row=1)` for each image, on the device of the pixels.
        With `include_background=False`, a pixel may also stay background, which does not count in
        the mean.
    ensemble : bool, default=False
        `probs` has one more axis in front: the members of an ensemble, or the views of test-time
        augmentation after inverting them. The members form a mixture, as in
        `maximize_expected_f_from_mixture`: one of them is right, and the pixels are independent
        given this member. Only for Dice and IoU. The mask for Dice is optimal; for IoU, for which
        no exact algorithm is known, there is a proven `bound`.
    weights : array-like, optional
        One weight for each member of the ensemble; equal by default.
    ignore : Tensor, optional
        Booleans, batch × pixels, batch × 1 × pixels or the shape of `probs` (of one member): True
        for pixels to exclude; with `exclusive` the same for all classes.
    smooth : float, default=0.0
        Added to numerator and denominator of Dice or IoU; not with `exclusive` or `ensemble`.
    include_background : bool, default=True
        With False, class 0 is left out: it gets an empty mask, and NaN instead of a value.
    zero_division : float, default=0.0
        The measure of an empty mask if the image does not contain the class. If it is above 0, the
        empty mask can be the best one. With `smooth` it is 1 by the formula.
    tol : float, default=1e-5
        With `exclusive`: the relative gap between `mean` and `bound` at which the search stops. The
        gap may stay larger if a proof would take too long.

    Returns
    -------
    Segmentation
        The masks, with their expected measure, standard deviation, sizes and thresholds.

    Notes
    -----
    The search takes a few passes over the pixels and sorts few of them. The pixels stay on their
    device, except those of ensembles, and of images that need more than double precision or have
    many nearly equal pixels: these are copied to the CPU. `probs` is copied if it is not
    contiguous, if it has 8 bits, or if pixels are ignored. On CUDA, two runs give the same bits.

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
    problem = _problem(measure, smooth, zero_division)
    coefficients = problem.coefficients
    given = f"without smoothing, got measure={measure!r}, smooth={smooth!r}"
    if exclusive and ensemble:
        raise ValueError("exclusive=True and ensemble=True cannot be combined")
    if exclusive and coefficients != DICE:
        raise ValueError(f"exclusive=True is for Dice {given}")
    if ensemble and coefficients not in (DICE, IOU):
        raise ValueError(f"ensemble=True is for Dice and IoU {given}")
    if weights is not None and not ensemble:
        raise ValueError("weights are for the members of an ensemble: give ensemble=True, too")
    gap = check_not_negative("tol", tol)
    p, is_single = _maps(probs, ensemble, spatial_dims, from_logits)
    ignored = None if ignore is None else _ignored(ignore, p[0], is_single)
    pixels = (p if ignored is None else p.masked_fill(ignored, 0.0)).flatten(3).contiguous()
    kept = pixels if include_background else pixels[:, :, 1:]
    if kept.shape[2] == 0:
        raise ValueError("include_background=False needs a class beside class 0, got 1 class")
    try:
        if ensemble:
            weight = ones_unless(as_weights(weights, len(p), "weights"), len(p))
            found = mixture_masks(kept.flatten(1, 2), weight, problem)
        elif exclusive:
            counted = None if ignored is None else _counted(ignored)
            zero = problem.zero_division
            found = assign_classes(kept[0], counted, zero, include_background, gap)
        else:
            found = best_masks(kept.reshape(-1, kept.shape[3]), problem)
    except NotAProbability:
        raise _first_bad(pixels, include_background, probs, from_logits) from None
    return _shaped(found, p[0], is_single)


def _maps(
    probs: Tensor, ensemble: bool, spatial_dims: int | None, from_logits: str | None
) -> tuple[Tensor, bool]:
    """Return probabilities, members × batch × classes × pixels; was the batch's axis missing?

    There is one member where there is no ensemble.
    """
    if not isinstance(probs, Tensor) or not probs.dtype.is_floating_point:
        kind = probs.dtype if isinstance(probs, Tensor) else type(probs).__name__
        raise ValueError(f"probs must be a tensor of floating-point probabilities, got {kind}")
    p = as_floats("probs", probs)
    p = p if ensemble else p[None]
    space = p.dim() - 3 if spatial_dims is None else check_count("spatial_dims", spatial_dims)
    is_single = p.dim() == space + 2
    if space < (2 if spatial_dims is None else 1) or p.dim() not in (space + 2, space + 3):
        axes = "members × batch × classes × pixels" if ensemble else "batch × classes × pixels"
        wanted = "two axes of pixels or more" if spatial_dims is None else f"{space} of pixels"
        raise ValueError(
            f"probs must be {axes} with {wanted}, got shape {tuple(probs.shape)}; give "
            "spatial_dims=2 for one image, classes × height × width, or 1 for rows of pixels"
        )
    if p.numel() == 0:
        raise ValueError(f"probs must hold pixels, got shape {tuple(probs.shape)}")
    p = p.unsqueeze(1) if is_single else p
    if from_logits is None:
        return p, is_single
    p = p.float() if p.dtype.itemsize < 4 else p
    if check_choice("from_logits", from_logits, ("sigmoid", "softmax")) == "sigmoid":
        return p.sigmoid(), is_single
    if p.shape[2] == 1:
        raise ValueError("from_logits='softmax' needs two classes or more, got 1; use 'sigmoid'")
    return p.softmax(2), is_single


def _ignored(ignore: Tensor, p: Tensor, is_single: bool) -> Tensor:
    """Return the ignored pixels in a shape that broadcasts to that of the probabilities."""
    if not isinstance(ignore, Tensor) or ignore.dtype != torch.bool:
        kind = ignore.dtype if isinstance(ignore, Tensor) else type(ignore).__name__
        raise ValueError(f"ignore must be a tensor of booleans, got {kind}")
    if ignore.layout != torch.strided or ignore.device != p.device:
        where = f"{ignore.layout} on {ignore.device}"
        raise ValueError(
            f"ignore must be dense and on the device of probs, {p.device}; got {where}"
        )
    batch, classes, *space = p.shape
    first = () if is_single else (batch,)
    shapes = (*first, classes, *space), (*first, *space), (*first, 1, *space)
    if tuple(ignore.shape) not in shapes:
        raise ValueError(
            f"ignore must have shape {shapes[0]}, {shapes[1]} or {shapes[2]}, "
            f"got {tuple(ignore.shape)}"
        )
    mask = ignore.as_subclass(Tensor)
    mask = mask[None] if is_single else mask
    return mask.unsqueeze(1) if mask.dim() < p.dim() else mask


def _counted(ignored: Tensor) -> Tensor:
    """Return the pixels that count, batch × pixels, where classes share them."""
    mask = ignored.flatten(2)
    if bool((mask != mask[:, :1]).any()):
        raise ValueError("ignore must be the same for all classes where exclusive=True")
    return ~mask[:, 0]


def _first_bad(
    pixels: Tensor, include_background: bool, probs: Tensor, from_logits: str | None
) -> ValueError:
    """Describe the first value that is no probability; called once one is known to exist."""
    bad = ~((pixels >= 0.0) & (pixels <= 1.0))
    bad[:, :, : not include_background] = False
    place = tuple(bad.view(probs.shape).nonzero()[0].tolist())
    value, rule, hint = float(probs[place]), "finite and in [0, 1]", ""
    rounding = 1e-2  # of sums of weighted ones, in half precision
    if from_logits is not None:
        rule = "finite logits"
    elif bool(((pixels[bad] >= -rounding) & (pixels[bad] <= 1.0 + rounding)).all()):
        hint = "; if that is rounding, use probs.clamp(0, 1)"
    elif not math.isnan(value):
        hint = "; if these are logits, give from_logits='sigmoid' or 'softmax'"
    return ValueError(f"probs must be {rule}, got {value!r} at position {place}{hint}")


def _shaped(rows: Segmentation, p: Tensor, is_single: bool) -> Segmentation:
    """Put rows back into the shape of the images; a class left out has no value."""
    batch, classes, *space = p.shape

    def table(each: Tensor, nothing: float) -> Tensor:
        values = each.view(batch, -1, *each.shape[1:])
        if values.shape[1] == classes:
            return values
        return torch.cat([torch.full_like(values[:, :1], nothing), values], 1)

    expected, labels, bound = table(rows.expected, torch.nan), rows.labels, rows.bound
    if labels is not None and bound is not None:  # no rounding puts it below the value
        labels, bound = labels.view(batch, *space), torch.maximum(bound, expected.nanmean(-1))
    elif bound is not None:
        bound = table(bound, torch.nan)
    masks, std = table(rows.masks, False).view(p.shape), table(rows.std, torch.nan)
    sizes = table(rows.k, 0), table(rows.threshold, torch.inf)
    found: Any = masks, expected, std, *sizes, labels, bound
    return Segmentation(*(each[0] if is_single and each is not None else each for each in found))


def _problem(measure: str | Measure, smooth: float, zero_division: float) -> Problem:
    """Return what to maximize: a ratio of counts, with its smoothing constant."""
    s = check_not_negative("smooth", smooth)
    if s > 0.0:
        if not isinstance(measure, str) or measure not in SMOOTHED:
            raise ValueError(
                f"smooth is for the names 'dice' and 'iou', got smooth={smooth!r} for {measure!r}; "
                "Dice(smooth=…) and IoU(smooth=…) have their own"
            )
        measure = SMOOTHED[measure](s)
    problem = Problem.of(1.0, measure, zero_division)
    if getattr(problem.measure, "tilts_up", False):
        raise ValueError(
            "a true positive must not lower the denominator of the measure (Tversky: a of at most "
            f"1), got {measure!r}"
        )
    return problem
