"""Draw every display on real data, as in docs/displays.md: python examples/gallery.py FOLDER."""

import sys
from pathlib import Path

import matplotlib as mpl
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from argmaxf import ExpectedFClassifier, SoftFClassifier, ThresholdFClassifier
from argmaxf.commands.rare import rare_digits
from argmaxf.displays import (
    BetaDisplay,
    EmpiricalFDisplay,
    ExpectedFDisplay,
    MethodComparisonDisplay,
    PriorSensitivityDisplay,
    ReliabilityDisplay,
)


def draw(folder: Path) -> list[Path]:
    frame = rare_digits()
    X, y = frame.drop("is_1").to_numpy(), frame["is_1"].to_numpy()
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)

    def model() -> object:
        return make_pipeline(StandardScaler(), LogisticRegression())

    plain = model().fit(X, y)
    methods = {
        "ML^.5": plain,
        "ML^δ": ThresholdFClassifier(model()).fit(X, y),
        "ML^E": ExpectedFClassifier(model()).fit(X, y),
        "F^δ": make_pipeline(StandardScaler(), SoftFClassifier()).fit(X, y),
    }
    pictures = {
        "expected": ExpectedFDisplay.from_estimator(plain, X_new),
        "empirical": EmpiricalFDisplay.from_estimator(plain, X_new, y_new, min_recall=0.5),
        "reliability": ReliabilityDisplay.from_estimator(plain, X_new, y_new),
        "beta": BetaDisplay.from_estimator(plain, X_new, beta=1.0),
        "prior": PriorSensitivityDisplay.from_estimator(plain, X_new),
        "methods": MethodComparisonDisplay.from_estimator(methods, X_new, y_new),
    }
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.png" for name in pictures]
    for path, picture in zip(paths, pictures.values(), strict=True):
        picture.figure_.savefig(path, dpi=100)
    return paths


if __name__ == "__main__":
    mpl.use("Agg")
    for path in draw(Path(sys.argv[1])):
        print(path)
