"""Photographs, a small network, its calibration, masks: python examples/segmentation.py FOLDER.

Things are pasted into scikit-learn's two photographs, so that the true masks are known: pieces of a
petal, half transparent, and rarer shades. A network of four layers
learns to find them in one part of the photographs and is tested in another.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_sample_images
from torch import Tensor, nn

from argmaxf.torch import segment

CLASSES = ("nothing", "petal", "shade")
SIDE = 48


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


def train(model: nn.Module, data: Scenes, steps: int, batch: int = 8) -> None:
    """Minimize cross-entropy."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-2, total_steps=steps)
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        rows = torch.randint(len(data.images), (batch,), generator=generator)
        loss = nn.functional.cross_entropy(model(data.images[rows]), data.labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()


def calibrate(model: nn.Module, data: Scenes) -> Callable[[Tensor], Tensor]:
    """Return the model's probabilities, brought in line with scenes it was not trained on.

    Logits are multiplied by a number and shifted by one for each class (temperature and bias).
    """
    with torch.no_grad():
        logits = model(data.images)
    scale, shift = torch.ones(1, requires_grad=True), torch.zeros(len(CLASSES), requires_grad=True)
    optimizer = torch.optim.LBFGS([scale, shift], max_iter=50)

    def moved(values: Tensor) -> Tensor:
        return values * scale + shift[:, None, None]

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = nn.functional.cross_entropy(moved(logits), data.labels)
        value.backward()
        return value

    optimizer.step(loss)
    return lambda images: moved(model(images)).softmax(1).detach()


def dice(masks: Tensor, truth: Tensor) -> Tensor:
    """Dice of each image × class, NaN where the class is not there (MONAI's convention)."""
    hits, sizes = (
        (masks & truth).flatten(2).sum(2),
        (masks.flatten(2) + 0 + truth.flatten(2)).sum(2),
    )
    return torch.where(truth.flatten(2).any(2), 2.0 * hits / sizes, torch.nan)[:, 1:]


def tuned_cuts(probs: Tensor, truth: Tensor) -> Tensor:
    """Return for each class the cut with the highest mean Dice on some scenes."""
    cuts = torch.linspace(0.02, 0.8, 40)
    scores = torch.stack([dice(probs > cut, truth).nanmean(0) for cut in cuts])
    return torch.cat([torch.ones(1), cuts[scores.argmax(0)]])[:, None, None]


def ways(probs: Tensor, cuts: Tensor) -> dict[str, Tensor]:
    """Return the masks of each way to decide; the first three let classes overlap."""
    argmax = torch.nn.functional.one_hot(probs.argmax(1), len(CLASSES)).movedim(-1, 1).bool()
    options = {"include_background": False}
    return {
        "threshold 0.5": probs > 0.5,
        "cut tuned on other scenes": probs > cuts,
        "exact": segment(probs, **options).masks,
        "argmax": argmax,
        "exact, one class each": segment(probs, exclusive=True, **options).masks,
    }


def resampled(scores: Tensor, draws: int = 2000) -> tuple[float, float]:
    """The 95 % interval of the mean Dice, scenes drawn anew."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.randint(len(scores), (draws, len(scores)), generator=generator)
    low, high = scores[rows].flatten(1).nanmean(1).quantile(torch.tensor([0.025, 0.975]))
    return float(low), float(high)


def compare(masks: dict[str, Tensor], truth: Tensor) -> list[str]:
    """Return the lines of a table: mean Dice, its interval, and that of exact less this one."""
    scores = {name: dice(each, truth) for name, each in masks.items()}
    lines = [
        "| masks | petal | shade | both | 95 % | exact less this one (95 %) |",
        "| --- | ---: | ---: | ---: | --- | --- |",
    ]
    for name, score in scores.items():
        rival = "exact, one class each" if name in ("argmax", "exact, one class each") else "exact"
        ahead = scores[rival] - score
        low, high = resampled(score)
        first, second = score.nanmean(0).tolist()
        paired = "{:+.3f} ({:+.3f} to {:+.3f})".format(float(ahead.nanmean()), *resampled(ahead))
        lines.append(
            f"| {name} | {first:.3f} | {second:.3f} | {float(score.nanmean()):.3f} "
            f"| {low:.3f} to {high:.3f} | {'' if name == rival else paired} |"
        )
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
            score = dice(mask[None], data.truth[row][None])[0].tolist()
            axis.imshow(_coloured(mask).numpy())
            axis.contour(data.labels[row].numpy(), [0.5, 1.5], colors="white", linewidths=0.8)
            values = ", ".join(f"{each:.2f}" for each in score if each == each)
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


def run(folder: Path, sizes: tuple[int, int, int] = (300, 150, 120), steps: int = 300) -> dict:
    """Train, calibrate, decide and compare; the pictures go to a folder."""
    torch.manual_seed(0)
    training, held_out = scenes(sizes[0], (0.0, 0.55), 0), scenes(sizes[1], (0.55, 0.75), 1)
    test = scenes(sizes[2], (0.75, 1.0), 2)
    model = network()
    train(model, training, steps)
    probabilities = calibrate(model, held_out)
    probs = probabilities(test.images)
    masks = ways(probs, tuned_cuts(probabilities(held_out.images), held_out.truth))
    folder.mkdir(parents=True, exist_ok=True)
    draw(folder / "segmentation-masks.png", test, masks, ("threshold 0.5", "exact"))
    draw(folder / "segmentation-labels.png", test, masks, ("argmax", "exact, one class each"))
    return {"probs": probs, "masks": masks, "test": test, "lines": compare(masks, test.truth)}


if __name__ == "__main__":
    import matplotlib as mpl

    mpl.use("Agg")
    print("\n".join(run(Path(sys.argv[1]))["lines"]))
