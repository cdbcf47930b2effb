"""Image segmentation: torch tensors in, torch tensors out, on the tensor's own device.

torch is imported when something here is first asked for. `segmentation` has the entry point, images
as they are given and returned, `tensors` the decision about rows of pixels: by the band
(`expected/band.py`), whose passes over tensors are in `passes` and, for NVIDIA GPUs, in
`triton_passes`. `exclusive` gives each pixel one class, `ensembles` decides under a mixture; both
use the searches in `sizes`.
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
