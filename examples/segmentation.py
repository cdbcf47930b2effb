"""Photographs, a small network, its calibration, masks: python examples/segmentation.py FOLDER.

Things are pasted into scikit-learn's two photographs, so that the true masks are known: pieces of a
petal, half transparent, and rarer shades. A network of four layers learns to find them in one part
of the photographs and is tested in another. RankSEG is put beside where it is installed.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_sample_images
from torch import Tensor, nn

from argmaxf.torch import calibrate_temperature, segment

CLASSES = ("nothing", "petal", "shade")
SIDE = 48
EXACT, ONE_EACH = "exact", "exact, one class each"


@dataclass(frozen=True)
class Scenes:
    """Images (n × 3 × side × side) and the class of each of their pixels."""

    images: Tensor
    labels: Tensor

    @property
    def truth(self) -> Tensor:
        """The masks of all classes."""
        return torch.nn.functional.one_hot(self.labels, len(CLASSES)).movedim(-1, 1).bool()


def scenes(n: int, part: tuple[float, float], seed: int) -> Scenes:
    """Make scenes from one part of the photographs, from left to right."""
    rng = np.random.default_rng(seed)
    temple, flower = (
        photo[:, int(part[0] * photo.shape[1]) : int(part[1] * photo.shape[1])] / 255.0
        for photo in load_sample_images().images
    )
    images, labels = zip(*(_scene(temple, flower, rng) for _ in range(n)), strict=True)
    return Scenes(
        torch.tensor(np.stack(images)).movedim(-1, 1).float(), torch.tensor(np.stack(labels))
    )


def _scene(temple: np.ndarray, flower: np.ndarray, rng: np.random.Generator) -> tuple:
    image, petal = _crop(temple, rng), _crop(flower, rng)
    labels = np.zeros((SIDE, SIDE), np.int64)
    for _ in range(rng.integers(0, 4)):
        blob = _blob(rng, 3.0, 9.0)
        alpha = rng.uniform(0.3, 0.7)
        image = np.where(blob[..., None], (1 - alpha) * image + alpha * petal, image)
        labels[blob] = 1
    for _ in range(rng.integers(0, 2)):
        blob = _blob(rng, 3.0, 7.0)
        image = np.where(blob[..., None], rng.uniform(0.5, 0.8) * image, image)
        labels[blob] = 2
    return image + 0.04 * rng.standard_normal(image.shape), labels


def _crop(photo: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A piece of a photograph with something to see in it: no plain sky."""
    while True:
        top, left = (rng.integers(0, size - SIDE) for size in photo.shape[:2])
        piece = photo[top : top + SIDE, left : left + SIDE]
        if piece.std() > 0.1 and piece.mean() > 0.2:
            return piece


def _blob(rng: np.random.Generator, least: float, most: float) -> np.ndarray:
    """A round thing with an uneven edge."""
    y, x = np.mgrid[:SIDE, :SIDE] - rng.uniform(8, SIDE - 8, 2)[:, None, None]
    angle, radius = np.arctan2(y, x), rng.uniform(least, most)
    waves = sum(rng.normal(0, 0.15) * np.cos(j * angle + rng.uniform(0, 7)) for j in (1, 2, 3, 5))
    return np.hypot(x, 1.4 * y) < radius * (1 + waves)


def network(channels: int = 16) -> nn.Module:
    """Four layers that see 31 × 31 pixels."""
    layers: list[nn.Module] = []
    for given, dilation in ((3, 1), (channels, 2), (channels, 4), (channels, 8)):
        layers += [nn.Conv2d(given, channels, 3, padding=dilation, dilation=dilation)]
        layers += [nn.BatchNorm2d(channels), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(channels, len(CLASSES), 1))


def train(
    model: nn.Module,
    data: Scenes,
    steps: int,
    batch: int = 8,
    loss_of: Callable[[Tensor, Tensor], Tensor] = nn.functional.cross_entropy,
) -> None:
    """Minimize cross-entropy, or another loss of logits and labels."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-2, total_steps=steps)
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        rows = torch.randint(len(data.images), (batch,), generator=generator)
        loss = loss_of(model(data.images[rows]), data.labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()


def probabilities(
    model: nn.Module, held_out: Scenes, calibrated: bool
) -> Callable[[Tensor], Tensor]:
    """Return what gives probabilities, with the temperature that suits scenes held out, or 1."""

    @torch.no_grad()
    def predict(images: Tensor) -> Tensor:
        return (scaling(model(images)) if calibrated else model(images)).softmax(1)

    with torch.no_grad():
        scaling = calibrate_temperature(model(held_out.images), held_out.labels)
    return predict


def score(masks: Tensor, truth: Tensor, measure: str = "dice") -> Tensor:
    """Dice or IoU of each image × class, NaN where the class is not there (MONAI's convention)."""
    hits, either = (masks & truth).flatten(2).sum(2), (masks | truth).flatten(2).sum(2)
    found = 2.0 * hits / (hits + either) if measure == "dice" else hits / either
    return torch.where(truth.flatten(2).any(2), found, torch.nan)[:, 1:]


def tuned_thresholds(probs: Tensor, truth: Tensor, measure: str) -> Tensor:
    """Return for each class the threshold with the highest mean score on some scenes."""
    cuts = torch.linspace(0.02, 0.8, 40)
    scores = torch.stack([score(probs > cut, truth, measure).nanmean(0) for cut in cuts])
    return torch.cat([torch.ones(1), cuts[scores.argmax(0)]])[:, None, None]


def ways(probs: Tensor, thresholds: Tensor, measure: str) -> dict[str, Tensor]:
    """Return the masks of each way to decide; in the last two, classes do not overlap."""
    argmax = torch.nn.functional.one_hot(probs.argmax(1), len(CLASSES)).movedim(-1, 1).bool()
    found = {"threshold 0.5": probs > 0.5, "tuned threshold": probs > thresholds}
    if importlib.util.find_spec("rankseg"):
        from rankseg import RankSEG

        for name, pruning in (("RankSEG", 0.5), ("RankSEG, pruning_prob=0", 0.0)):
            ranking = RankSEG(metric=measure, output_mode="multilabel", pruning_prob=pruning)
            found[name] = ranking.predict(probs).bool()
    found[EXACT] = segment(probs, measure=measure, include_background=False).masks
    found["argmax"] = argmax
    found[ONE_EACH] = segment(probs, exclusive=True, include_background=False).masks
    return found


def resampled(scores: Tensor, draws: int = 2000) -> str:
    """The mean score, and its 95 % interval, scenes drawn anew."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.randint(len(scores), (draws, len(scores)), generator=generator)
    low, high = scores[rows].flatten(1).nanmean(1).quantile(torch.tensor([0.025, 0.975])).tolist()
    return f"{float(scores.nanmean()):.3f} ({low:.3f} to {high:.3f})"


def table(scores: dict[str, dict[str, list[Tensor]]]) -> list[str]:
    """Return the lines of a table from the scores of each measure, way and seed."""
    lines = [
        "| masks | Dice (95 %) | exact minus this | of each seed | petal, shade | IoU (95 %) |",
        "| --- | ---: | ---: | --- | --- | ---: |",
    ]
    for name, of_seeds in scores["dice"].items():
        rival = scores["dice"][ONE_EACH if name in ("argmax", ONE_EACH) else EXACT]
        ahead = [best - each for best, each in zip(rival, of_seeds, strict=True)]
        whole = torch.cat(of_seeds)
        cells = [
            resampled(whole),
            "" if rival is of_seeds else resampled(torch.cat(ahead)),
            " / ".join(f"{float(each.nanmean()):.3f}" for each in of_seeds),
            ", ".join(f"{each:.3f}" for each in whole.nanmean(0).tolist()),
            resampled(torch.cat(scores["iou"][name])),
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def draw(path: Path, data: Scenes, masks: dict[str, Tensor], shown: tuple[str, ...]) -> None:
    """Draw four scenes in which the masks shown differ, the true edges in white.

    Of those with both classes, by how many pixels differ: the first, and a few further on.
    """
    import matplotlib.pyplot as plt

    first, second = (masks[name] for name in shown)
    differ = (first != second).flatten(1).sum(1) + 1
    differ *= 1 + SIDE**2 * data.truth.flatten(2).any(2).all(1)  # those with both classes first
    order = differ.sort(descending=True, stable=True).indices
    rows = order[[len(order) * place // 32 for place in range(4)]]
    figure, axes = plt.subplots(4, 4, figsize=(9, 9.4), layout="constrained")
    for line, row in zip(axes, rows.tolist(), strict=True):
        pictures = [data.truth[row], first[row], second[row]]
        for axis, mask, name in zip(line[1:], pictures, ("truth", *shown), strict=True):
            scores = score(mask[None], data.truth[row][None])[0].tolist()
            axis.imshow(_coloured(mask).numpy())
            axis.contour(data.labels[row].numpy(), [0.5, 1.5], colors="white", linewidths=0.8)
            values = ", ".join(f"{each:.2f}" for each in scores if each == each)
            axis.set_title(name if name == "truth" else f"{name}: {values}", fontsize=9)
        line[0].imshow(data.images[row].movedim(0, -1).clamp(0, 1).numpy())
        line[0].set_title("scene", fontsize=9)
    for axis in axes.flat:
        axis.set_axis_off()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _coloured(mask: Tensor) -> Tensor:
    """Petals orange, shades blue."""
    colours = torch.tensor([[0.1, 0.1, 0.1], [0.9, 0.5, 0.1], [0.2, 0.6, 0.9]])
    return colours[torch.where(mask[2], 2, torch.where(mask[1], 1, 0))]


def run(
    folder: Path,
    sizes: tuple[int, int, int] = (300, 150, 120),
    steps: int = 1000,
    seeds: tuple[int, ...] = (1, 2, 3),
) -> dict[str, list[str]]:
    """Train, decide and compare, with and without calibration; the pictures go to a folder.

    Each seed has its own scenes and its own network.
    """
    folder.mkdir(parents=True, exist_ok=True)
    scores: dict = {True: {"dice": {}, "iou": {}}, False: {"dice": {}, "iou": {}}}
    for seed in seeds:
        torch.manual_seed(seed)
        parts = zip(sizes, ((0.0, 0.55), (0.55, 0.75), (0.75, 1.0)), strict=True)
        training, held_out, test = (
            scenes(n, part, 100 * seed + number) for number, (n, part) in enumerate(parts)
        )
        model = network()
        train(model, training, steps)
        for calibrated, of_measures in scores.items():
            predict = probabilities(model, held_out, calibrated)
            for measure, of_ways in of_measures.items():
                cuts = tuned_thresholds(predict(held_out.images), held_out.truth, measure)
                masks = ways(predict(test.images), cuts, measure)
                for name, each in masks.items():
                    of_ways.setdefault(name, []).append(score(each, test.truth, measure))
                if calibrated and measure == "dice" and seed == seeds[0]:
                    draw(folder / "segmentation-masks.png", test, masks, ("threshold 0.5", EXACT))
                    draw(folder / "segmentation-labels.png", test, masks, ("argmax", ONE_EACH))
    return {"calibrated": table(scores[True]), "not calibrated": table(scores[False])}


if __name__ == "__main__":
    import matplotlib as mpl

    mpl.use("Agg")
    for title, lines in run(Path(sys.argv[1])).items():
        print(f"{title}\n\n" + "\n".join(lines), end="\n\n")
