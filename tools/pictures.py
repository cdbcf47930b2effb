"""Draw the pictures of docs/displays.md by the scripts of the gallery: python tools/pictures.py."""

import runpy
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

ROOT = Path(__file__).parent.parent
GALLERY, IMAGES = ROOT / "examples" / "gallery", ROOT / "docs" / "images"
SHOWN = (
    "expected",
    "empirical",
    "reliability",
    "beta",
    "prior",
    "worst_case",
    "methods",
    "monitor",
)


def draw(name: str, path: Path) -> None:
    """Run a script of the gallery and keep its last picture."""
    runpy.run_path(str(GALLERY / f"plot_{name}.py"))
    plt.gcf().savefig(path, dpi=100)
    plt.close("all")


if __name__ == "__main__":
    mpl.use("Agg")
    sys.path.insert(0, str(GALLERY))
    for name in SHOWN:
        draw(name, IMAGES / f"{name}.png")
        print(IMAGES / f"{name}.png")
