"""The results page: what was run, what came out, and what it says about the paper's claims."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.resources import files

from argmaxf.paper.claims import answers
from argmaxf.paper.clock import PARTS
from argmaxf.paper.harness import Plan, versions
from argmaxf.paper.published import place
from argmaxf.paper.reports import Report, markdown_table

CAPTIONS = {
    "table1": "Ours with 2 sd, and the printed numbers (diamonds).",
    "table2": "The caption's setting and the one that fits.",
    "figure1": "The three panels of Figure 1; bands are one sd over seeds.",
    "adaptation": "Every seed, its mean, and the printed numbers.",
    "table3": "Mean F1 by the number of positives.",
    "table4": "Macro-F1; open diamonds are printed.",
    "bounds": "Bounds and what is observed.",
    "algorithms": "Time for one decision.",
    "map": "F1 of ML^E minus F1 of ML^δ.",
    "cost": "Expected F1 lost by wrong models, and the Figure 1 view of real labels.",
}
RESEARCH = ("map", "cost")  # questions the paper leaves open
WORDS = (
    "EUM is the paper's empirical utility maximization: a threshold tuned (ML^δ) or a model "
    "trained (F^δ) for F on labelled rows. DTA is its decision-theoretic approach: the labels "
    "with the highest expected F by the probabilities of a model (ML^E). ML^.5 cuts these at "
    "one half; Truth^E and Truth^δ have the true ones. Made data are seen as coordinates "
    "(R0), with a constant (R1), and with all products of two (R2). On real data C is the "
    "least number of positives of a label, in training as in the test, and there are two "
    "setups: texts read and penalties chosen as the paper seems to have done it (paper-like), "
    "and as one would now (default)."
)


def results_page(reports: Mapping[str, Report], titles: Mapping[str, str], plan: Plan) -> str:
    """Return the page as Markdown, with figures and tables in results/."""
    parts = ["# The paper, reproduced", _how(reports, plan)]
    found = answers({name: report.findings for name, report in reports.items()})
    if found:
        lines = [
            [claim.statement, claim.place, f"**{verdict}**", ", ".join(map(_link, claim.needs))]
            for claim, verdict, _ in found
        ]
        parts.append("## The claims\n\n" + _left_table(lines))
        parts += [f"**{claim.statement}** {evidence}" for claim, _, evidence in found]
    parts += [_section(name, titles[name], report) for name, report in reports.items()]
    errata = files("argmaxf.paper").joinpath("errata.md").read_text(encoding="utf-8")
    parts.append("## Errata of the paper\n\n" + errata.strip())
    return "\n\n".join(parts) + "\n"


def timing_page(seconds: Mapping[str, Mapping[str, float]]) -> str:
    """Return where the time went: model fitting, soft F, deciding, the rest."""
    lines = []
    total = {part: sum(s[part] for s in seconds.values()) for part in ("total", *PARTS)}
    for name, spent in [*seconds.items(), ("all", total)]:
        shares = [f"{100 * spent[part] / max(spent['total'], 1e-9):.0f} %" for part in PARTS]
        lines.append([name, f"{spent['total']:.1f}", *shares])
    header = ["experiment", "seconds", "fitting models", "training soft F", "deciding"]
    return (
        "# Where the time went\n\n"
        + markdown_table(header, lines)
        + "\n\nWall-clock seconds of all processes together; the rest is sampling, loading and "
        "judging. Times differ from run to run, and grow where the machine does other work.\n"
    )


def _how(reports: Mapping[str, Report], plan: Plan) -> str:
    packages = ", ".join(f"{name} {number}" for name, number in versions().items())
    command = "argmaxf reproduce " + ("all" if len(reports) > 9 else " ".join(reports))
    command += f" --seeds {plan.seeds}" if plan.seeds else ""
    command += " --quick" if plan.quick else ""
    look = "\n\n**A quick look: few seeds and labels, so verdicts below mean little.**"
    return (
        "Ye, Chai, Lee and Chieu, “Optimizing F-Measures: A Tale of Two Approaches”, ICML 2012: "
        f"its section 4 run again, the printed number beside ours.\n\n{WORDS}\n\n"
        f"Made by `{command}` with {packages}, Python {platform.python_version()}. "
        "Seeds count from 0 in every experiment. Each table is in `results/` as Markdown, CSV and "
        "JSON, each figure as PNG and SVG; where the time went is in "
        "[results/timing.md](results/timing.md)." + plan.quick * look
    )


def _section(name: str, title: str, report: Report) -> str:
    where = "a question the paper leaves open" if name in RESEARCH else _place(name)
    figure = f"![{CAPTIONS[name]}](results/{name}.png)\n\n*{CAPTIONS[name]}*"
    return f"## {title}\n\n*{where}*\n\n{report.text.strip()}\n\n{figure}"


def _place(name: str) -> str:
    try:
        return place(name)
    except KeyError:
        return {"figure1": "section 4.1.1, Figure 1", "bounds": "section 2.1"}[name]


def _link(name: str) -> str:
    return f"[{name}](results/{name}.png)"


def _left_table(lines: list[list[str]]) -> str:
    header = ["claim", "place in the paper", "our data", "figures"]
    return markdown_table(header, lines).replace("---:", "---")
