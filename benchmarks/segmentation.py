"""Masks for segmentation beside sorting and RankSEG: time, and expected Dice lost.

python -m benchmarks.segmentation [--device cuda] prints the tables of
docs/background/segmentation.md; RankSEG is put beside where it is installed, at its default
(`pruning_prob=.5`) and at its best (0).
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from argmaxf.problem import Problem
from argmaxf.torch import segment

SHAPES = {
    "cpu": [
        "2×3×65536 sparse softmax",
        "4×21×256² softmax",
        "4×21×256² absent",
        "16×1×512² blob",
    ],
    "cuda": [
        "8×21×512² blob",
        "8×21×512² softmax",
        "8×21×512² absent",
        "16×1×512² blob",
        "64×1×64² blob",
        "1×1×10⁸ blob",
    ],
}
LABELS = {
    "cpu": ["1×5×96² fields", "1×21×64² softmax"],
    "cuda": ["1×5×512² fields", "4×21×256² softmax"],
}


def maps(name: str, device: str) -> torch.Tensor:
    """Return the probabilities of a shape by its name."""
    generator = torch.Generator(device).manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, device=device)

    shape, kind = name.split(" ", 1)
    sizes = [_number(part) for part in shape.split("×")]
    if "²" in shape:
        sizes.append(sizes[-1])
    if kind == "blob":
        return torch.sigmoid(3 * normal(*sizes) - 5)
    if kind == "absent":  # a class that is not there
        return torch.exp(normal(*sizes) - 9)
    if kind == "fields":  # smooth ones, classes rarer and rarer
        smooth = 9 * torch.nn.functional.avg_pool2d(normal(*sizes), 9, 1, 4)
        return torch.softmax(smooth - 0.5 * torch.arange(sizes[1], device=device)[:, None, None], 1)
    return torch.softmax((8 if "sparse" in kind else 4) * normal(*sizes), 1)


def _number(text: str) -> int:
    return 10**8 if text == "10⁸" else int(text.rstrip("²"))


RANKSEG: dict[str, dict[str, Any]] = {
    "RankSEG RMA": {},
    "RMA screened": {"safe_screening": "auto"},
    "BA": {"solver": "BA"},
}
PRUNING = (0.5, 0.0)  # its default, and what never empties a mask
LARGEST_BA = {"cpu": 1 << 19, "cuda": 1 << 24}  # it takes minutes beyond


def ours(p: torch.Tensor) -> dict[str, Callable[[], Any]]:
    """Return what argmaxf offers, and sorting."""
    return {
        "argmaxf, Dice": lambda: segment(p, spatial_dims=p.dim() - 2).masks,
        "argmaxf, IoU": lambda: segment(p, spatial_dims=p.dim() - 2, measure="iou").masks,
        "torch.sort": lambda: p.flatten(2).sort(-1),
    }


def theirs(p: torch.Tensor, way: str, mode: str) -> list[Callable[[], Any]]:
    """Return what RankSEG offers, at both settings; nothing if it is missing or takes too long."""
    if importlib.util.find_spec("rankseg") is None or (
        way == "BA" and p.numel() >= LARGEST_BA[p.device.type]
    ):
        return []
    from rankseg import RankSEG

    solvers = [
        RankSEG(metric="dice", output_mode=mode, pruning_prob=pruning, **RANKSEG[way])
        for pruning in PRUNING
    ]
    return [lambda solver=solver: solver.predict(p) for solver in solvers]


def timed(work: Callable[[], Any], device: str) -> float:
    """Return the median seconds of 20 runs, or of as many as take two, after .3 seconds of them.

    A GPU that has idled takes that long to reach its clock.
    """
    seconds: list[float] = []
    begun = time.perf_counter()
    while time.perf_counter() - begun < 0.3:
        run_once(work, device)
    while len(seconds) < 20 and sum(seconds) < 2.0:
        seconds.append(run_once(work, device))
    return sorted(seconds)[len(seconds) // 2]


def run_once(work: Callable[[], Any], device: str) -> float:
    """Return the seconds of one run."""
    start = time.perf_counter()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def lost(best: torch.Tensor, theirs: torch.Tensor) -> str:
    """Return the mean part of the best expected Dice that others lose."""
    return f"{float(((best - theirs) / best.clamp(min=1e-300)).mean()):.0e}"


def expected_dice(p: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """E[Dice] of any masks, by the integral over all pixels in double precision."""
    from argmaxf.torch.tensors import mask_values

    rows, chosen = p.flatten(2).flatten(0, 1), masks.flatten(2).flatten(0, 1).bool()
    return mask_values(rows, chosen, Problem.of())[0].view(p.shape[:2])


def masks_table(device: str, only: str) -> Iterator[str]:
    """Yield the lines of the table of masks: milliseconds, and in brackets expected Dice lost."""
    yield f"| maps, ms | argmaxf, Dice | argmaxf, IoU | torch.sort | {' | '.join(RANKSEG)} |"
    yield "| --- |" + 6 * " ---: |"
    for name in SHAPES[device]:
        if only not in name:
            continue
        p = maps(name, device)
        cells = [f"{1e3 * timed(work, device):.3g}" for work in ours(p).values()]
        best = segment(p, spatial_dims=p.dim() - 2).expected
        for way in RANKSEG:
            works = theirs(p, way, "multilabel")
            times = " / ".join(f"{1e3 * timed(work, device):.3g}" for work in works)
            losses = " / ".join(lost(best, expected_dice(p, work())) for work in works)
            cells.append(f"{times} ({losses})" if works else "")
        yield f"| {name} | {' | '.join(cells)} |"
        del p


def labels_table(device: str) -> Iterator[str]:
    """Yield the lines of the table of one class for each pixel: expected mean Dice lost."""
    yield "| maps, ms | argmaxf | proven gap | argmax | RankSEG RMA |"
    yield "| --- |" + 4 * " ---: |"
    for name in LABELS[device]:
        p = maps(name, device)
        found = segment(p, exclusive=True)
        seconds = timed(lambda p=p: segment(p, exclusive=True), device)
        gap = (1.0 - found.mean / found.bound).clamp(min=0.0).max().item()
        cells = [f"{1e3 * seconds:.3g}", f"{gap:.0e}"]
        works = [lambda p=p: p.argmax(1), *theirs(p, "RankSEG RMA", "multiclass")]
        values = [mean_dice(p, work()) for work in works]
        times = [f"{1e3 * timed(work, device):.3g}" for work in works]
        losses = [lost(found.mean, value) for value in values]
        cells += [f"{times[0]} ({losses[0]})"]
        cells += [f"{' / '.join(times[1:])} ({' / '.join(losses[1:])})"]
        yield f"| {name} | {' | '.join(cells)} |"


def mean_dice(p: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """E[mean Dice] of labels, for each image."""
    place = torch.arange(p.shape[1], device=p.device).view(1, -1, *[1] * (p.dim() - 2))
    return expected_dice(p, labels.unsqueeze(1) == place).mean(1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--maps", default="", help="only masks of maps whose name has this")
    options = parser.parse_args()
    for line in masks_table(options.device, options.maps):
        print(line, flush=True)
    print()
    for line in labels_table(options.device) if not options.maps else ():
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
