"""Image segmentation: torch tensors in, torch tensors out, on the tensor's own device.

torch is imported when something here is first asked for. There are three parts to read;
docs/tour.md walks through the first.

One mask for each image × class: `segmentation` (the door), `pixels` (what is given), `anywhere`
(on the CPU the decision for arrays is made, and the way ends here), `rows` (the five steps on a
GPU), `form` (the measure at the nodes), `keys` and `passes` (over the pixels), `tables` and `climb`
(bins and bounds on them), `search` (closer and closer) and `records` (the answer). `powers` makes
the passes shorter for many positives, `engine` chooses who makes them, `array_passes` has two for
the CPU, and `tensors` is the door for the functions of arrays.

The same as Triton kernels, to be read beside the plain modules of their names: `triton_passes` with
`triton_counts`, `triton_powers`, `triton_tables` with `triton_nodes`, `triton_climb`;
`triton_numbers` is what they share.

Pixels that classes or members share: `one_class` with `exclusive`, `ensembles` with `mixtures`;
both stand on `sizes` (the best size of a set) and `ascent` (many moves at once).
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
