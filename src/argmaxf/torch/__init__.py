"""torch tensors in, torch tensors out, on the tensor's own device: segmentation, losses, metrics.

torch is imported when something here is first asked for. `segmentation` has the entry point, images
as they are given and returned, `tensors` the decision about rows of pixels and sums over them: as
arrays on the CPU, and by the kernels of `triton_rows` on NVIDIA GPUs. `exclusive` gives each pixel
one class, `ensembles` decides under a mixture. `temperature` calibrates logits, `losses` and
`metrics` are for training, `monai` has transforms.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argmaxf.torch import losses, metrics
    from argmaxf.torch.segmentation import segment
    from argmaxf.torch.temperature import TemperatureScaling, calibrate_temperature
    from argmaxf.torch.tensors import Segmentation

__all__ = [
    "Segmentation",
    "TemperatureScaling",
    "calibrate_temperature",
    "losses",
    "metrics",
    "segment",
]


def __getattr__(name: str) -> Any:
    """Import a public name, and torch with it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    homes = {"Segmentation": "tensors", "segment": "segmentation", "losses": name, "metrics": name}
    try:
        home = import_module(f"argmaxf.torch.{homes.get(name, 'temperature')}")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            "argmaxf.torch needs torch: pip install 'argmaxf[torch]'"
        ) from None
    return getattr(home, name, home)


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
