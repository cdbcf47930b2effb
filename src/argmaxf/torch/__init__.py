"""Image segmentation: torch tensors in, torch tensors out, on the tensor's own device.

torch is imported when something here is first asked for. There are three parts to read;
docs/tour.md walks through the first.

One mask for each image × class: `segmentation` (the door), `pixels` (what is given), `anywhere`
(on the CPU the decision for arrays is made, and the way ends here), `rows` (the steps on a GPU),
`bands` (where the lowest pixel can be) by `passes` over all pixels, `form` and `series` (the
measure and sums at the nodes) by `host_kernels`, `stretches` (the pixels of a band in order),
`search` (the best set that ends there) by `items`, `values` (mean and spread) and `records` (the
answer).
`engine` chooses who works on pixels, and `tensors` is the door for the functions of arrays.

The same as Triton kernels, to be read beside the plain modules: `triton_passes`, `triton_items`.

Pixels that classes or members share: `one_class` with `exclusive`, `ensembles` with `mixtures`;
both stand on `sizes` (the best size of a set) and `ascent` (many moves at once); `array_sums` has
two sums for the CPU.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argmaxf.torch.segmentation import Segmentation, segment

__all__ = ["Segmentation", "segment"]


def __getattr__(name: str) -> Any:
    """Import a public name, and torch with it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module("argmaxf.torch.segmentation"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            "argmaxf.torch needs torch: pip install 'argmaxf[torch]'"
        ) from None


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
