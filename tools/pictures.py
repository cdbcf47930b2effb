"""Draw the pictures of the documentation: python tools/pictures.py.

Those of the displays come from the scripts of the gallery, that of the README from the first table
of the method study, those of docs/background/after-deployment.md from its tables.
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


SHIFTS = ("no shift", "prior shift", "covariate shift")
PREDICTIONS = {  # rows of the table of shifts: name and colour
    "ratio of expected counts": "tab:grey",
    "EM and ratio": "tab:brown",
    "NannyML CBPE": "tab:red",
    "predicted, F": "tab:blue",
    "predicted_after_shift, F": "tab:green",
}
LABEL_PLANS = {
    "uniform": "tab:grey",
    "stratified": "tab:brown",
    "OASIS": "tab:red",
    "plan_labels": "tab:blue",
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


def after_deployment(heading: str) -> list[list[str]]:
    """Return the rows of the first table under a heading of the page on measurements."""
    page = (ROOT / "docs" / "background" / "after-deployment.md").read_text(encoding="utf-8")
    text = page.split(f"## {heading}")[1].split("\n## ")[0]
    table = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return table[2:]


def draw_shift(path: Path) -> None:
    """Draw error and coverage of predicted F under each shift."""
    cells = {row[0]: row[1:] for row in after_deployment("Predicted F under shift")}
    figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
    for i, (name, color) in enumerate(PREDICTIONS.items()):
        found = [[float(x) for x in re.findall(r"[-+.\d]+", cell)] for cell in cells[name]]
        place = [shift + 0.16 * (i - 2) for shift in range(len(SHIFTS))]
        axes[0].bar(place, [each[0] for each in found], 0.15, color=color, label=name)
        if len(found[0]) > 2:
            axes[1].plot(place, [each[2] for each in found], "o", color=color)
    axes[1].axhline(95, color="grey", linewidth=1)
    axes[0].set_ylabel("mean absolute error, points")
    axes[1].set_ylabel("coverage of 95 % intervals, %")
    axes[1].set_ylim(40, 101)
    for ax in axes:
        ax.set_xticks(range(len(SHIFTS)), SHIFTS)
        ax.set_xlim(-0.5, len(SHIFTS) - 0.5)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    figure.savefig(path, dpi=100)


def draw_labels(path: Path) -> None:
    """Draw the error of F against the number of labels on each set."""
    rows = after_deployment("Labels needed to know F")
    sets = list(dict.fromkeys(row[0] for row in rows))
    figure, axes = plt.subplots(1, len(sets), figsize=(11, 2.8), sharey=True, layout="constrained")
    for ax, name in zip(axes, sets, strict=True):
        for of, method, *errors, _ in rows:
            if of == name:
                budgets = [50 * 2**i for i in range(len(errors))]
                found = [max(float(each), 5e-4) for each in errors]
                ax.loglog(budgets, found, "o-", ms=3, color=LABEL_PLANS[method], label=method)
        ax.axhline(0.02, color="grey", linewidth=1, linestyle=":")
        title, rate, f = name.split(", ")
        ax.set_title(f"{title}\n{rate} positives, F1 {f}", fontsize="small")
        ax.set_xticks([50, 200, 800], ["50", "200", "800"])
        ax.minorticks_off()
    axes[0].set_ylabel("root mean squared error of F1")
    figure.supxlabel("labels", fontsize="medium")
    axes[-1].legend(fontsize="x-small", frameon=False)
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    mpl.use("Agg")
    sys.path.insert(0, str(GALLERY))
    for name in SHOWN:
        draw(name, IMAGES / f"{name}.png")
        print(IMAGES / f"{name}.png")
    draw_gains(IMAGES / "gain.png")
    draw_shift(IMAGES / "after-deployment-shift.png")
    draw_labels(IMAGES / "after-deployment-labels.png")
