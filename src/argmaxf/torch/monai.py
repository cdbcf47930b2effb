"""Transforms for MONAI: masks with the highest expected Dice or IoU instead of `AsDiscrete`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from monai.config import KeysCollection
from monai.data import MetaTensor
from monai.transforms import InvertibleTransform, MapTransform
from monai.utils import convert_to_tensor

from argmaxf.torch.segmentation import segment

__all__ = ["BestMask", "BestMaskd"]


class BestMask(InvertibleTransform):
    """Turn the output of a network, classes × pixels, into masks with the highest expected Dice.

    Parameters
    ----------
    as_labels : bool, default=False
        Return the class of each pixel, 1 × pixels, instead of masks, classes × pixels; needs
        ``exclusive=True``.
    **options
        Those of `argmaxf.torch.segment`: ``from_logits="softmax"``, ``exclusive=True``,
        ``measure="iou"``, ``include_background=False``, …

    Notes
    -----
    Masks keep the metadata of what they are made of, and the transforms applied to it, so that
    `Invertd` and the inverse of a `Compose` bring them back to the original image. The inverse of
    this transform itself returns masks as they are: probabilities are not kept.

    Masks are floats, as those of `AsDiscrete`. Spatial transforms should be inverted with
    ``nearest_interp=True``, or before this one, on the probabilities.
    """

    def __init__(self, *, as_labels: bool = False, **options: Any) -> None:
        if as_labels and not options.get("exclusive"):
            raise ValueError("as_labels=True needs exclusive=True: one class for each pixel")
        self.as_labels, self.options = as_labels, options

    def __call__(self, img: Any) -> Any:
        """Return the masks of one image.

        Parameters
        ----------
        img : Tensor, MetaTensor or array
            Probabilities or logits, classes × pixels.

        Returns
        -------
        MetaTensor
        """
        given = convert_to_tensor(img, track_meta=True)
        found = segment(given.as_tensor(), spatial_dims=given.dim() - 1, **self.options)
        masks = found.labels[None] if self.as_labels else found.masks  # type: ignore[index]
        out = MetaTensor(masks.float(), meta=given.meta)
        out.applied_operations = list(given.applied_operations)
        self.push_transform(out)
        return out

    def inverse(self, data: Any) -> Any:
        """Return the masks as they are, without the record of this transform.

        Parameters
        ----------
        data : MetaTensor
            Masks, or what other inverses made of them.

        Returns
        -------
        MetaTensor
        """
        self.pop_transform(data)
        return data


class BestMaskd(MapTransform, InvertibleTransform):
    """The same for entries of a dictionary.

    Parameters
    ----------
    keys : str or sequence of str
        The entries with the output of a network.
    allow_missing_keys : bool, default=False
        Leave out keys that are not there.
    **options
        Those of `BestMask`.
    """

    def __init__(
        self, keys: KeysCollection, allow_missing_keys: bool = False, **options: Any
    ) -> None:
        super().__init__(keys, allow_missing_keys)
        self.transform = BestMask(**options)

    def __call__(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        """Return the dictionary with masks in the entries.

        Parameters
        ----------
        data : mapping
            With the output of a network, classes × pixels, in each entry named.

        Returns
        -------
        dict
        """
        found = dict(data)
        for key in self.key_iterator(found):
            found[key] = self.transform(found[key])
        return found

    def inverse(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        """Return the dictionary without the record of this transform in the entries.

        Parameters
        ----------
        data : mapping
            With masks in the entries.

        Returns
        -------
        dict
        """
        found = dict(data)
        for key in self.key_iterator(found):
            found[key] = self.transform.inverse(found[key])
        return found
