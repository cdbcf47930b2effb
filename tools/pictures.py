"""Draw the pictures of README.md and docs/displays.md: python tools/pictures.py.

Those of the displays come from the scripts of the gallery, that of the README from the first table
of the method study.
"""

import re
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

GAINS = {  # rows of the study's table: name and colour
    "threshold 0.5": ("threshold 0.5", "grey"),
    "tuned threshold": ("ThresholdFClassifier", "tab:blue"),
    "expected F": ("ExpectedFClassifier", "tab:orange"),
    "**AutoF**": ("AutoFClassifier", "tab:green"),
}


def draw(name: str, path: Path) -> None:
    """Run a script of the gallery and keep its last picture."""
    runpy.run_path(str(GALLERY / f"plot_{name}.py"))
    plt.gcf().savefig(path, dpi=100)
    plt.close("all")


def draw_gains(path: Path) -> None:
    """Draw each method's gain over TunedThresholdClassifierCV, with its interval."""
    page = ROOT / "docs" / "background" / "method-study.md"
    table = page.read_text(encoding="utf-8").split("### Against scikit-learn")[1].split("###")[0]
    header, _, *rows = (line.strip("| ").split(" | ") for line in table.splitlines() if "|" in line)
    figure, axes = plt.subplots(1, 4, figsize=(10, 2.3), sharey=True, layout="constrained")
    cells = {row[0]: row[1:] for row in rows}
    for column, (ax, model) in enumerate(zip(axes, header[1:], strict=True)):
        for y, (name, (_, color)) in enumerate(GAINS.items()):
            value, low, high = map(float, re.findall(r"[-+.\d]+", cells[name][column]))
            ax.errorbar(value, y, xerr=[[value - low], [high - value]], fmt="o", color=color)
            ax.annotate(
                f"{value + 0.0:+.1f}", (value, y), (0, 6), textcoords="offset points", ha="center"
            )
        ax.axvline(0, color="grey", linewidth=1)
        ax.set_title(model)
        ax.margins(x=0.15, y=0.25)
    axes[0].set_yticks(range(len(GAINS)), [name for name, _ in GAINS.values()])
    axes[0].invert_yaxis()
    figure.supxlabel("test F1 minus that of TunedThresholdClassifierCV, in points")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    mpl.use("Agg")
    sys.path.insert(0, str(GALLERY))
    for name in SHOWN:
        draw(name, IMAGES / f"{name}.png")
        print(IMAGES / f"{name}.png")
    draw_gains(IMAGES / "gain.png")
