"""
The mask with the highest Dice
==============================

An uncertain model gives a small object low probabilities. At a threshold of 0.5 it nearly vanishes;
the mask with the highest expected Dice keeps it. A batch of maps on a GPU is decided there: see
:doc:`segmentation </segmentation>`.
"""

import matplotlib.pyplot as plt
import numpy as np

from argmaxf import maximize_expected_f

side = np.linspace(-1, 1, 160)
x, y = np.meshgrid(side, side)
faint = 0.46 * np.exp(-((x - 0.35) ** 2 + (y + 0.3) ** 2) / 0.05)
bright = 0.62 * np.exp(-((x + 0.4) ** 2 + (y - 0.35) ** 2) / 0.02)
p = np.clip(faint + bright + 0.005, 0, 1)
best = maximize_expected_f(p, measure="dice", average="micro")

figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
titles = ("probability", "threshold 0.5", f"highest Dice: threshold {best.threshold:.2f}")
for ax, image, title in zip(axes, (p, p >= 0.5, best.selected), titles, strict=True):
    ax.imshow(image, cmap="viridis", vmin=0, vmax=1)
    ax.set_title(title)
    ax.set_axis_off()
