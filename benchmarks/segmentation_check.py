"""python -m benchmarks.segmentation_check [--device cuda]: is the decision on a device exact?

Prints a line for each check and exits with 1 if one fails: the same k and masks as the NumPy
decision for every type of number, two runs equal bit for bit, memory beside the input, bad input.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from argmaxf import expected_f, maximize_expected_f
from argmaxf.problem import Problem
from argmaxf.torch import segment
from argmaxf.torch.tensors import mask_values


def images(rng: np.random.Generator) -> dict[str, torch.Tensor]:
    """Return maps of probabilities of many kinds, batch × classes × pixels."""
    logits = 3 * rng.standard_normal((2, 3, 40_000)) - 5
    softmax = torch.softmax(torch.from_numpy(4 * rng.standard_normal((3, 5, 64, 64))), 1)
    return {
        "blob": torch.sigmoid(torch.from_numpy(logits)),
        "softmax": softmax,
        "uniform": torch.from_numpy(rng.random((2, 2, 100, 100))),
        "absent": torch.from_numpy(rng.random((2, 2, 30_000)) * 1e-6),
        "8-bit": torch.from_numpy(rng.integers(0, 256, (2, 2, 30_000)) / 255),
        "one value": torch.full((1, 2, 20_000), 0.3, dtype=torch.float64),
        "zeros and ones": torch.from_numpy(rng.integers(0, 2, (2, 2, 5_000)).astype(float)),
        "nothing": torch.zeros(1, 2, 5_000, dtype=torch.float64),
        "low and equal": torch.tensor([1e-7, 1e-5, 3e-4, 1e-3]).double().repeat(1, 262_144, 1).mT,
        "one equal class": torch.stack(
            [torch.full((262_144,), 1e-5).double(), torch.from_numpy(rng.beta(0.1, 5, 262_144))]
        )[None],
        "two clusters": torch.from_numpy(
            np.concatenate([rng.beta(50, 5, (1, 2, 4_000)), rng.beta(1, 500, (1, 2, 30_000))], 2)
        ),
        "small": torch.from_numpy(rng.beta(0.5, 5, (4, 2, 7, 9))),
    }


def reference(p: torch.Tensor, **options: Any) -> Any:
    """Return the decision on the CPU."""
    return decided(p.cpu(), **options)


def decided(p: torch.Tensor, **options: Any) -> Any:
    """Return the decision about maps with any number of axes of pixels."""
    return segment(p, spatial_dims=p.dim() - (3 if options.get("ensemble") else 2), **options)


def checks(device: str) -> Iterator[tuple[str, bool, str]]:
    """Yield what was checked, whether it holds, and figures."""
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        others = (("iou", 0.0), ("dice", 1.0)) if dtype == torch.float32 else ()
        yield from decisions(device, dtype, (("dice", 0.0), *others))
    yield from one_class_each(device)
    yield from ensembles(device)
    yield from functions(device)
    yield from repeated(device)
    yield from many_rows(device)
    if device == "cuda":
        yield from memory()
        yield from huge()
    yield from refusals(device)


def decisions(
    device: str, dtype: torch.dtype, chance: Sequence[tuple[str, float]]
) -> Iterator[tuple[str, bool, str]]:
    """Every kind of image: the k, masks and values of the CPU."""
    for name, p in images(np.random.default_rng(0)).items():
        p = p.to(dtype)
        for measure, zero in chance:
            options: dict[str, Any] = {"measure": measure, "zero_division": zero}
            truth = reference(p, **options)
            found = decided(p.to(device), **options)
            same = torch.equal(truth.k, found.k.cpu())
            same &= torch.equal(truth.masks, found.masks.cpu())
            same &= torch.allclose(truth.expected, found.expected.cpu(), rtol=1e-11, atol=0.0)
            same &= torch.allclose(truth.std, found.std.cpu(), rtol=1e-7, atol=1e-13)
            figures = f"k = {truth.k.flatten()[:3].tolist()}"
            yield f"{name}, {dtype}, {measure}, 0/0 = {zero:g}", same, figures


def one_class_each(device: str) -> Iterator[tuple[str, bool, str]]:
    """Classes that share pixels: the labels, or at least the value, of the CPU, and its bound."""
    generator = torch.Generator().manual_seed(3)
    fields = torch.randn((1, 5, 96, 96), generator=generator)
    fields = (9 * torch.nn.functional.avg_pool2d(fields, 9, 1, 4)).softmax(1)
    rare = (fields.log() - 0.7 * torch.arange(5)[:, None, None]).softmax(1)
    noise = torch.randn((2, 21, 64, 64), generator=generator).softmax(1)
    for name, p in {"fields": fields, "rare": rare, "noise": noise}.items():
        for background in (True, False):
            options = {"exclusive": True, "include_background": background}
            truth, found = reference(p, **options), decided(p.to(device), **options)
            again = decided(p.to(device), **options)
            mean, bound = found.mean.cpu(), found.bound.cpu()
            same = bool(
                (mean >= truth.mean * (1 - 1.1e-5)).all() & (bound <= mean * (1 + 1.1e-5)).all()
            )
            same &= torch.equal(found.labels, again.labels) & torch.equal(found.bound, again.bound)
            equal = (found.labels.cpu() == truth.labels).double().mean().item()
            gap = (1 - mean / bound).max().item()
            yield f"one class each, {name}, {background}", same, f"{equal:.5f} equal, gap {gap:.1e}"


def ensembles(device: str) -> Iterator[tuple[str, bool, str]]:
    """Mixtures: the masks of the CPU for Dice, for IoU no worse a value and bound."""
    generator = torch.Generator().manual_seed(4)
    common = 3 * torch.randn((1, 2, 2, 64, 64), generator=generator) - 3
    p = torch.sigmoid(common + torch.randn((4, 2, 2, 64, 64), generator=generator))
    for zero in (0.0, 1.0):
        truth = reference(p, ensemble=True, zero_division=zero)
        found = decided(p.to(device), ensemble=True, zero_division=zero)
        same = torch.equal(truth.k, found.k.cpu()) and torch.equal(truth.masks, found.masks.cpu())
        yield f"ensemble, dice, 0/0 = {zero:g}", same, f"k = {found.k.flatten().tolist()}"
    found, again = (decided(p.to(device), ensemble=True, measure="iou") for _ in range(2))
    plain = reference(p, ensemble=True, measure="iou")
    near = (found.expected.cpu() - plain.expected).abs().max().item()
    gap = (1 - found.expected / found.bound).max().item()
    same = near < 1e-6 and torch.equal(found.masks, again.masks) and gap >= 0
    yield "ensemble, iou", same, f"{near:.1e} from the CPU's, gap {gap:.1e}"


def functions(device: str) -> Iterator[tuple[str, bool, str]]:
    """The functions for arrays answer tensors with tensors on the same device."""
    p = torch.sigmoid(3 * torch.randn((3, 50_000), device=device) - 5)
    truth = decided(p[:, None])
    rows = maximize_expected_f(p, average="samples")
    one = maximize_expected_f(p[0])
    same = torch.equal(rows.k, truth.k[:, 0]) and torch.equal(rows.selected, truth.masks[:, 0])
    same &= torch.equal(one.selected, truth.masks[0, 0]) and one.k.device == p.device
    yield "maximize_expected_f of a tensor", same, f"k = {rows.k.tolist()}"
    value = expected_f(p[0], one.selected)
    near = torch.stack([value.mean - one.expected, value.std - one.std]).abs().max().item()
    yield "expected_f of a tensor", near < 1e-12 and value.mean.device == p.device, f"{near:.1e}"


def many_rows(device: str) -> Iterator[tuple[str, bool, str]]:
    """More rows than a grid of programs has room for."""
    p = torch.rand((70_000, 40), generator=torch.Generator().manual_seed(5)) ** 3
    truth = maximize_expected_f(p.numpy(), average="samples")
    found = maximize_expected_f(p.to(device), average="samples")
    value, _ = mask_values(p.to(device), found.selected, Problem.of())
    same = found.k.cpu().tolist() == truth.k.tolist()
    same &= bool((found.selected.cpu().numpy() == truth.selected).all())
    same &= torch.allclose(value, found.expected, rtol=1e-11)
    yield f"{len(p)} rows", same, f"k = {truth.k[:3].tolist()}"


def repeated(device: str) -> Iterator[tuple[str, bool, str]]:
    """Two runs must agree in every bit."""
    size = (8, 21, 512, 512) if device == "cuda" else (2, 3, 64, 64)
    p = torch.sigmoid(3 * torch.randn(size, device=device) - 5)
    for measure in ("dice", "iou"):
        first, second = (decided(p, measure=measure) for _ in range(2))
        fields = ("masks", "expected", "std", "k", "threshold")
        same = all(torch.equal(getattr(first, f), getattr(second, f)) for f in fields)
        yield f"two runs, {measure}, {tuple(size)}", same, ""


def memory() -> Iterator[tuple[str, bool, str]]:
    """At most twice the input beside it, masks included."""
    for shape in ((8, 21, 512, 512), (1, 1, 10**8)):
        p = torch.sigmoid(3 * torch.randn(shape, device="cuda") - 5)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        found = decided(p)
        extra = (torch.cuda.max_memory_allocated() - before) / (p.numel() * 4)
        yield f"memory, {shape}", extra <= 2.0, f"{extra:.2f} × the input"
        del p, found


def huge() -> Iterator[tuple[str, bool, str]]:
    """More equal pixels than a 32-bit number counts: all are chosen."""
    n = (1 << 31) + 12_345
    found = decided(torch.full((1, 1, n), 0.25, dtype=torch.bfloat16, device="cuda"))
    same = found.k.item() == n and abs(found.expected.item() - 0.4) < 1e-6  # 2 p / (1 + p)
    same &= bool(found.masks.all())
    yield f"{n} pixels in one set", same, f"k = {found.k.item()}"


def refusals(device: str) -> Iterator[tuple[str, bool, str]]:
    """Bad values are named, and what cannot be had on the device."""
    if device == "cuda":
        try:
            maximize_expected_f(torch.rand(10, device=device), max_selected=3)
        except ValueError as error:
            yield "refuses limits", "give p.cpu()" in str(error), str(error)
        else:
            yield "refuses limits", False, "no error"
    for bad in (float("nan"), float("inf"), -1e-6, 3.0):
        p = torch.full((2, 2, 5_000), 0.25, device=device)
        p[1, 0, 77] = bad
        try:
            decided(p)
        except ValueError as error:
            yield f"refuses {bad}", "(1, 0, 77)" in str(error), str(error)
        else:
            yield f"refuses {bad}", False, "no error"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--all", action="store_true", help="print what holds, too")
    options = parser.parse_args()
    results = []
    for name, holds, figures in checks(options.device):
        results.append((name, holds, figures))
        if options.all or not holds:
            print("holds " if holds else "FAILS ", name, figures, flush=True)
    failed = sum(not holds for _, holds, _ in results)
    print(f"{len(results) - failed} of {len(results)} checks hold on {options.device}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
