"""Image segmentation: torch tensors in, torch tensors out, on the tensor's own device.

torch is imported when something here is first asked for. To read it, go along one call of
`segment` on a GPU: `segmentation` (the door) and `pixels` (what is given), `rows` (the five steps),
`keys`, `passes` (over the pixels), `form` and `tables` (nodes and bins), `climb` (bounds), `search`
(closer and closer) and `records` (the answer). Aside from it are `powers` (shorter passes for many
positives), `one_class` with `exclusive`, `ensembles` with `mixtures`, `ascent` and `sizes`,
`tensors` for the functions of arrays, and the other way round `anywhere` and `array_passes`, which
go by arrays on the CPU. `triton_climb`, `triton_passes`, `triton_powers` and
`triton_tables` have the kernels of the plain modules of those names; `triton_counts` is a part of
the passes, `triton_nodes` of the tables, and `triton_numbers` is what kernels share.
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
