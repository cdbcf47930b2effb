"""Masks for segmentation beside sorting and RankSEG: time, and expected Dice lost.

python -m benchmarks.segmentation [--device cuda] prints the table; RankSEG is put beside where it
is installed, at its default (`pruning_prob=.5`) and at its best (0).
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from argmaxf.torch import segment

SHAPES = {
    "cpu": ["2×3×65536 sparse softmax", "4×21×256² softmax", "16×1×512² blob"],
    "cuda": [
        "8×21×512² blob",
        "8×21×512² softmax",
        "16×1×512² blob",
        "64×1×64² blob",
        "1×1×10⁸ blob",
    ],
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
    return torch.softmax((8 if "sparse" in kind else 4) * normal(*sizes), 1)


def _number(text: str) -> int:
    return 10**8 if text == "10⁸" else int(text.rstrip("²"))


def ways(p: torch.Tensor, slow: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield ours, sorting, and what RankSEG offers."""
    yield "argmaxf", lambda: segment(p).masks
    yield "argmaxf, IoU", lambda: segment(p, measure="iou").masks
    yield "torch.sort", lambda: p.flatten(2).sort(-1)
    if importlib.util.find_spec("rankseg") is None:
        return
    from rankseg import RankSEG

    for name, options in {
        "RankSEG RMA": {},
        "RankSEG RMA, pruning 0": {"pruning_prob": 0.0},
        "RankSEG RMA screened": {"safe_screening": "auto"},
        "RankSEG RMA screened, pruning 0": {"safe_screening": "auto", "pruning_prob": 0.0},
        "RankSEG BA, pruning 0": {"solver": "BA", "pruning_prob": 0.0},
    }.items():
        if "BA" not in name or (slow and p.numel() < 1 << 24):
            solver = RankSEG(metric="dice", output_mode="multilabel", **options)
            yield name, lambda solver=solver: solver.predict(p)


def timed(work: Callable[[], Any], device: str) -> float:
    """Return the median seconds of 20 runs, or of as many as take two, after a warm one."""
    work()
    seconds: list[float] = []
    while len(seconds) < 20 and sum(seconds) < 2.0:
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return sorted(seconds)[len(seconds) // 2]


def lost(p: torch.Tensor, masks: torch.Tensor) -> float:
    """Return the mean part of the best expected Dice that masks lose."""
    best = segment(p).expected
    theirs = expected_dice(p, masks)
    return float(((best - theirs) / best.clamp(min=1e-300)).mean())


def expected_dice(p: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """E[Dice] of any masks, by the integral over all pixels in double precision."""
    from argmaxf.torch.rows import value_of

    rows, chosen = p.flatten(2).flatten(0, 1), masks.flatten(2).flatten(0, 1).bool()
    return value_of(rows, chosen, (2.0, 1.0, 1.0, 0.0, 0.0), 0.0)[0].view(p.shape[:2])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--regret", action="store_true", help="expected Dice lost, too")
    parser.add_argument("--slow", action="store_true", help="BA, too")
    parser.add_argument("--maps", help="only maps whose name has this")
    options = parser.parse_args()
    print("| maps | way | ms | beside torch.sort | E[Dice] lost |\n|---|---|---:|---:|---:|")
    for name in SHAPES[options.device]:
        if options.maps and options.maps not in name:
            continue
        p = maps(name, options.device)
        results = [(way, timed(work, options.device), work) for way, work in ways(p, options.slow)]
        sort = next(seconds for way, seconds, _ in results if way == "torch.sort")
        for way, seconds, work in results:
            regret = ""
            if options.regret and way.startswith("RankSEG"):
                regret = f"{lost(p, work()):.1e}"
            line = f"| {name} | {way} | {1e3 * seconds:.3g} | {seconds / sort:.2f} | {regret} |"
            print(line, flush=True)
        del p, results
    return 0


if __name__ == "__main__":
    sys.exit(main())
