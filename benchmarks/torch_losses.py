"""python -m benchmarks.torch_losses: networks trained by cross entropy and by soft F, on real sets.

A network with 32 hidden units, batches of 64 rows, 20 epochs of Adam, five seeds. Half of the rows
train it; a sixth choose the threshold, the temperature and the epoch by the loss that trains it;
the others test it. Calibration is log loss and the error of ten bins of equal size (ECE), of the
network and after a temperature and a shift (Platt) on the same sixth. Needs the group `study`.

`--digits` instead trains on batches of 8 rows, of which most hold one positive or none: the digit 8
against the others, 16 hidden units, 5 epochs, 900 images to train and tune on, 12 splits.

`--segmentation` trains the network of examples/segmentation.py by cross entropy and by soft Dice.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from typing import Any

import numpy as np
import torch
from scipy.special import expit
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.nn import functional

from argmaxf import maximize_empirical_f, maximize_expected_f
from argmaxf.torch.losses import SoftFLoss
from benchmarks.choosing.sets import real_sets

SETS = ("kc1", "optdigits", "page_blocks0", "satimage", "sylva", "winequality_red_4", "yeast3")
SEEDS, EPOCHS, ROWS, HALF = 5, 20, 64, 10
LOSSES = ("cross entropy", "soft F, batch", "soft F, dataset", "cross entropy, then soft F")


def train(X: Any, y: Any, X_held: Any, y_held: Any, name: str, seed: int) -> torch.nn.Module:
    """Return the network of the epoch with the lowest loss on held-out rows."""
    torch.manual_seed(seed)
    width = X.shape[1]
    net = torch.nn.Sequential(
        torch.nn.Linear(width, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1), torch.nn.Flatten(0)
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    soft = SoftFLoss("f1", sums_over="batch" if name.endswith("batch") else "dataset")
    best, kept = np.inf, {}
    for epoch in range(EPOCHS):
        by_entropy = name == LOSSES[0] or (name == LOSSES[3] and epoch < HALF)
        loss = functional.binary_cross_entropy_with_logits if by_entropy else soft
        if name == LOSSES[3] and epoch == HALF:
            best = np.inf
        soft.train()
        for rows in torch.randperm(len(X)).split(ROWS):
            optimizer.zero_grad()
            loss(net(X[rows]), y[rows]).backward()
            optimizer.step()
        soft.eval()
        with torch.no_grad():
            value = float(loss(net(X_held), y_held))
        if value < best:
            best, kept = value, {k: v.clone() for k, v in net.state_dict().items()}
    net.load_state_dict(kept)
    return net


def calibration_error(y: np.ndarray, p: np.ndarray) -> float:
    parts = np.array_split(np.argsort(p, kind="stable"), 10)
    return float(sum(abs(p[part].sum() - y[part].sum()) for part in parts) / len(p))


def results(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, list[float]]:
    """Return what each loss reaches on one split of one set."""
    rows, rest = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=seed)
    held, test = train_test_split(rest, test_size=2 / 3, stratify=y[rest], random_state=seed)
    Z = torch.as_tensor(StandardScaler().fit(X[rows]).transform(X), dtype=torch.float32)
    target, found = torch.as_tensor(y, dtype=torch.float32), {}
    for name in LOSSES:
        net = train(Z[rows], target[rows], Z[held], target[held], name, seed)
        with torch.no_grad():
            logits = net(Z).double().numpy()
        platt = LogisticRegression(C=1e3).fit(logits[held, None], y[held])
        p, calibrated = expit(logits[test]), platt.predict_proba(logits[test, None])[:, 1]
        threshold = maximize_empirical_f(y[held], logits[held], smoothing=50).threshold
        found[name] = [
            100 * f1_score(y[test], logits[test] >= threshold),
            100 * f1_score(y[test], maximize_expected_f(p).selected),
            100 * f1_score(y[test], maximize_expected_f(calibrated).selected),
            p.sum() / y[test].sum(),
            log_loss(y[test], p),
            log_loss(y[test], calibrated),
            100 * calibration_error(y[test], p),
            100 * calibration_error(y[test], calibrated),
        ]
    return found


def digits() -> None:
    """Print what batches of 8 rows do to each loss, with standard errors over splits."""
    X, digit = load_digits(return_X_y=True)
    Z, y = torch.as_tensor(X / 16.0, dtype=torch.float32), digit == 8
    target, found = torch.as_tensor(y, dtype=torch.float32), defaultdict(list)
    for seed in range(12):
        rows, test = train_test_split(np.arange(len(y)), train_size=900, random_state=seed)
        for name in LOSSES[:3]:
            torch.manual_seed(seed)
            net = torch.nn.Sequential(
                torch.nn.Linear(64, 16),
                torch.nn.ReLU(),
                torch.nn.Linear(16, 1),
                torch.nn.Flatten(0),
            )
            optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
            soft = SoftFLoss("f1", sums_over="batch" if name.endswith("batch") else "dataset")
            loss = functional.binary_cross_entropy_with_logits if name == LOSSES[0] else soft
            for _ in range(5):
                for part in torch.as_tensor(rows)[torch.randperm(len(rows))].split(8):
                    optimizer.zero_grad()
                    loss(net(Z[part]), target[part]).backward()
                    optimizer.step()
            with torch.no_grad():
                logits = net(Z).double().numpy()
            p = expit(logits[test])
            threshold = maximize_empirical_f(y[rows], logits[rows]).threshold
            found[name].append([
                f1_score(y[test], logits[test] >= threshold),
                f1_score(y[test], maximize_expected_f(p).selected),
                log_loss(y[test], p), p.sum() / y[test].sum(),
            ])  # fmt: skip
    for name, table in ((name, np.array(each)) for name, each in found.items()):
        mean, error = table.mean(axis=0), table.std(axis=0, ddof=1) / np.sqrt(len(table))
        low, high = table[:, 3].min(), table[:, 3].max()
        scores = [f"{m:.3f} (± {e:.3f})" for m, e in zip(mean[:3], error, strict=False)]
        print(f"| {name} | {' | '.join(scores)} | {mean[3]:.2f} ({low:.2f} to {high:.2f}) |")


def segmentation(seed: int = 1) -> None:
    """Print mean Dice of ways to decide, and what happens to the probabilities of both classes."""

    from examples import segmentation as example

    parts = ((300, (0.0, 0.55)), (150, (0.55, 0.75)), (120, (0.75, 1.0)))
    made = [example.scenes(*part, 100 * seed + number) for number, part in enumerate(parts)]
    training, held_out, test = made
    entropy, steps = functional.cross_entropy, 1000
    dice = SoftFLoss("dice", sums_over="batch", from_logits="softmax")
    phases = {
        "cross entropy": [(entropy, steps)],
        "soft Dice": [(dice, steps)],
        "cross entropy, then soft Dice": [(entropy, steps // 2), (dice, steps // 2)],
    }
    head = "0.5 | tuned | exact | exact, calibrated | predicted / true pixels | log loss"
    print(f"| loss | {head} | calibrated |\n| --- |" + " ---: |" * 7)
    for name, losses in phases.items():
        torch.manual_seed(seed)
        model = example.network()
        for loss, number in losses:
            model.train()
            example.train(model, training, number, loss_of=loss)
        cells, last = [], []
        for calibrated in (False, True):
            predict = example.probabilities(model, held_out, calibrated)
            probs = predict(test.images)
            cuts = example.tuned_thresholds(predict(held_out.images), held_out.truth, "dice")
            masks = example.ways(probs, cuts, "dice")
            wanted = ("threshold 0.5", "tuned threshold", example.EXACT)[2 if calibrated else 0 :]
            scores = [float(example.score(masks[w], test.truth).nanmean()) for w in wanted]
            cells += [f"{score:.3f}" for score in scores]
            last.append(
                f"{float(functional.nll_loss(probs.clamp_min(1e-7).log(), test.labels)):.3f}"
            )
            if not calibrated:
                rates = probs.sum((0, 2, 3)) / test.truth.sum((0, 2, 3))
                ratio = ", ".join(f"{float(x):.2f}" for x in rates[1:])
        print(f"| {name} | {' | '.join([*cells, ratio, *last])} |", flush=True)


def main() -> None:
    """Print the means over sets and seeds, and differences with intervals over sets."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torch_losses", description=__doc__)
    parser.add_argument("--digits", action="store_true", help="batches of 8 rows instead")
    parser.add_argument("--segmentation", action="store_true", help="pixels instead")
    torch.set_num_threads(1)
    options = parser.parse_args()
    if options.digits or options.segmentation:
        digits() if options.digits else segmentation()
        return
    found: dict[str, list[list[float]]] = defaultdict(list)
    sets = [of for of in real_sets() if of.name in SETS]
    for of in sets:
        for seed in range(SEEDS):
            for name, values in results(of.X, of.y, seed).items():
                found[name].append(values)
    tables = {k: np.reshape(v, (len(sets), SEEDS, -1)) for k, v in found.items()}
    print(", ".join(of.name for of in sets))
    head = ["loss", "F1, tuned threshold", "difference", "F1, expected F", "the same, calibrated"]
    head += ["predicted / true positives", "log loss", "calibrated", "ECE, %", "calibrated"]
    print("| " + " | ".join(head) + " |")
    print("| --- |" + " ---: |" * 9)
    for name, table in tables.items():
        gain = (table - tables[LOSSES[0]])[:, :, 0].mean(axis=1)
        reach = 2.45 * gain.std(ddof=1) / np.sqrt(len(gain))  # Student's t of seven sets
        tuned, plain, calibrated, ratio, *losses = table.mean(axis=(0, 1))
        cells = [f"{tuned:.1f}", f"{gain.mean():+.1f} ± {reach:.1f}", f"{plain:.1f}",
                 f"{calibrated:.1f}", f"{ratio:.2f}", *(f"{x:.3f}" for x in losses[:2]),
                 *(f"{x:.1f}" for x in losses[2:])]  # fmt: skip
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
