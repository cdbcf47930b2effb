"""From trials to tables: differences over families, regret, ranks, wins, few and many positives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata, t

from benchmarks.choosing.methods import METHODS, MODELS, ROWWISE, SMOOTHED, THEIRS
from benchmarks.choosing.rules import CONTENDERS, IN_USE, RULES, SINGLE, Seen, test_scores

TIE = 0.05  # points of F1, the mean over splits, within which two methods tie on a set
POSITIVES = ((0, 15), (16, 50), (51, 10**9))  # in training
AUTO = "AutoF"
OTHERS = (THEIRS, ROWWISE, SMOOTHED)  # no rule may choose them


@dataclass(frozen=True)
class Study:
    """Test F1 of every method, one entry for each trial, and where each trial belongs."""

    f1: dict[str, np.ndarray]
    family: np.ndarray
    model: np.ndarray
    name: np.ndarray
    positives: np.ndarray

    @classmethod
    def of(cls, seen: Sequence[Seen]) -> Study:
        """Gather the trials; AutoF is the rule in use."""
        f1 = {m: np.array([one.test[m] for one in seen]) for m in (*METHODS, *OTHERS)}
        f1 |= {rule: test_scores(RULES[rule], seen) for rule in RULES}
        f1[AUTO] = f1[IN_USE]
        trials = [one.trial for one in seen]
        return cls(
            f1,
            np.array([trial.family for trial in trials]),
            np.array([trial.model for trial in trials]),
            np.array([trial.name for trial in trials]),
            np.array([int(trial.y.sum()) for trial in trials]),
        )

    def by_family(self, values: np.ndarray, where: np.ndarray) -> np.ndarray:
        """Return the mean of each family: sets from one source count once."""
        present = sorted(set(self.family[where]))
        return np.array([values[where & (self.family == one)].mean() for one in present])

    def difference(self, a: str, b: str, where: np.ndarray) -> str:
        """Return a - b with its 95 % interval over families (Student's t)."""
        values = self.by_family(self.f1[a] - self.f1[b], where)
        if len(values) < 2:
            return "–"
        reach = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
        return f"{values.mean():+.1f} [{values.mean() - reach:+.1f}, {values.mean() + reach:+.1f}]"

    def by_set(self, values: np.ndarray, where: np.ndarray) -> np.ndarray:
        """Return the mean over the splits of each set."""
        return np.array([values[where & (self.name == n)].mean() for n in self._names(where)])

    def _names(self, where: np.ndarray) -> list[str]:
        return sorted(set(self.name[where]))

    def regret(
        self, method: str, where: np.ndarray, families: Sequence[str] | None = None
    ) -> float:
        """Return the points lost against the best single method of each set, over families."""
        best = np.max([self.by_set(self.f1[m], where) for m in SINGLE], axis=0)
        lost = best - self.by_set(self.f1[method], where)
        source = np.array([self.family[self.name == n][0] for n in self._names(where)])
        wanted = sorted(set(source)) if families is None else families
        return float(np.mean([lost[source == one].mean() for one in wanted]))


def report(study: Study) -> str:
    """Return all tables as Markdown."""
    sets, families = len(set(study.name)), len(set(study.family))
    parts = [
        f"{sets} sets of {families} families, {len(study.name) // len(MODELS)} splits in all.",
        "### Against scikit-learn's TunedThresholdClassifierCV", against_theirs(study),
        "### Head to head", head_to_head(study),
        "### By the number of positives in training", by_positives(study),
        "### Rules that choose", rules(study),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def against_theirs(study: Study) -> str:
    """Return points of test F1 more than TunedThresholdClassifierCV, for each model."""
    rows = []
    for method in (*METHODS, AUTO):
        cells = [study.difference(method, THEIRS, study.model == m) for m in MODELS]
        rows.append([f"**{method}**" if method == AUTO else method, *cells])
    return table(["points of F1", *MODELS], rows)


def head_to_head(study: Study) -> str:
    """Return the differences that the library's defaults rest on, ranks, wins, ties and losses."""
    pairs = [("expected F", "tuned threshold"), ("expected F", "expected F, uncalibrated"),
             (SINGLE[3], "expected F"), (ROWWISE, "expected F")]  # fmt: skip
    rows = [
        [f"{a} − {b}", *(study.difference(a, b, study.model == m) for m in MODELS)]
        for a, b in pairs
    ]
    ranks = {m: _ranks(study, study.model == m) for m in MODELS}
    rows += [
        [f"mean rank: {method}", *(f"{ranks[m][method]:.2f}" for m in MODELS)]
        for method in (*METHODS, THEIRS)
    ]
    rows.append([f"{AUTO} wins / ties / losses, sets", *(_wtl(study, m) for m in MODELS)])
    return table(["", *MODELS], rows)


def _ranks(study: Study, where: np.ndarray) -> dict[str, float]:
    methods = (*METHODS, THEIRS)
    scores = np.array([study.by_set(study.f1[m], where) for m in methods])
    return dict(zip(methods, rankdata(-scores, axis=0).mean(axis=1), strict=True))


def _wtl(study: Study, model: str) -> str:
    where = study.model == model
    gain = study.by_set(study.f1[AUTO] - study.f1[THEIRS], where)
    return f"{(gain > TIE).sum()} / {(abs(gain) <= TIE).sum()} / {(gain < -TIE).sum()}"


def by_positives(study: Study) -> str:
    """Return the differences that matter, where positives are few and where they are not."""
    rows = []
    for low, high in POSITIVES:
        inside = (study.positives >= low) & (study.positives <= high)
        span = f"at most {high}" if not low else f"{low} to {high}" if high < 10**9 else f"{low}+"
        for a, b in (("expected F", "tuned threshold"), (SMOOTHED, THEIRS), (AUTO, THEIRS)):
            cells = [study.difference(a, b, inside & (study.model == m)) for m in MODELS]
            rows.append([f"{span}: {a} − {b}", *cells])
    return table(["positives", *MODELS], rows)


def rules(study: Study) -> str:
    """Return the regret of each rule, and of choosing the rule with families left out."""
    rows = []
    for rule in RULES:
        lost = [study.regret(rule, study.model == m) for m in MODELS]
        rows.append([rule, *(f"{x:.2f}" for x in lost), f"**{np.mean(lost):.2f}**"])
    lost = left_out(study)
    rows.append(
        ["the best of the first nine rules on all other families", *(f"{x:.2f}" for x in lost),
         f"**{np.mean(lost):.2f}**"]
    )  # fmt: skip
    return table(["regret", *MODELS, "mean"], rows)


def left_out(study: Study) -> list[float]:
    """Return the regret for each model when each family's rule is chosen by the other families."""
    families = sorted(set(study.family))
    lost = np.array(
        [
            [[study.regret(rule, study.model == m, [one]) for one in families] for m in MODELS]
            for rule in CONTENDERS
        ]
    )  # rules × models × families
    others = (lost.sum(axis=2, keepdims=True) - lost).mean(axis=1)  # each without one family
    best = others.argmin(axis=0)
    return [float(np.mean(lost[best, m, np.arange(len(families))])) for m in range(len(MODELS))]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, numbers to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
