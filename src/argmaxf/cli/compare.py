"""argmaxf compare: methods on a table of data, which to use, and why."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from argmaxf.cli import common

if TYPE_CHECKING:
    from argmaxf.cli.tables import LabelledTable
    from argmaxf.comparison.result import Comparison
    from argmaxf.measures import MeasureLike


def compare(
    train: Path,
    target: list[str],
    drop: list[str] | None = None,
    only: list[str] | None = None,
    estimator: str = "logistic",
    svmperf: bool = False,
    cost_sensitive: bool = False,
    beta: float = 1.0,
    measure: str = "fbeta",
    positive: str | None = None,
    min_precision: float | None = None,
    min_recall: float | None = None,
    max_selected_rate: float | None = None,
    confidence_level: float | None = None,
    test: Path | None = None,
    folds: int = 5,
    group: str | None = None,
    seed: int = 0,
    report: Path | None = None,
    save: Path | None = None,
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Compare decision methods on your data, and say which one to use and why."""
    from argmaxf._base.atomic_write import writing, written_whole
    from argmaxf.cli.models import make_classifier, save_classifier
    from argmaxf.cli.tables import read_table, split_like, split_table, with_positive
    from argmaxf.constraints import Constraints

    inputs = [path for path in (train, test) if path]
    inside = [path for folder in inputs if folder.is_dir() for path in folder.rglob("*")]
    common.refuse_existing([report, save], [*inputs, *inside], force=force)
    for module, extra, wanted in (("clarabel", "svmperf", svmperf), ("skops.io", "save", save)):
        if wanted:
            common.needed(module, f"--{extra}", extra)
    columns: dict[str, Any] = {"drop": drop or (), "only": only or (), "group": group}
    rows = split_table(read_table(train), target, train.name, **columns)
    tested = None if test is None else split_like(read_table(test), rows, test.name)
    rows, tested, counted = with_positive(rows, tested, positive)
    classifier = make_classifier(estimator, seed)
    asked: dict[str, Any] = {
        "estimator": classifier,
        "beta": beta,
        "measure": common.measure_named(measure),
        "positive": counted,
        "folds": folds,
        "seed": seed,
        "methods": ("margin",) * svmperf + ("cost",) * cost_sensitive,
        "constraints": Constraints(min_precision, min_recall, max_selected_rate),
        "confidence_level": confidence_level,
    }
    with ExitStack() as stack:  # every output is begun before the work, and none is left half done
        write_report = stack.enter_context(common.report_to(report, "render"))
        model = stack.enter_context(written_whole(save)) if save else None
        with common.progress_bar() as show:
            found = compare_tables(rows, tested, **asked, progress=show)
        if as_json:
            common.print_json(_as_record(found, report, save))
        else:
            _print(found)
        saved = None
        if save and model:
            with common.working(f"fitting {found.chosen} on all rows"), writing(save):
                saved = save.name, save_classifier(_fitted(found, rows), model)
        command = ["argmaxf", *map(_without_folder, sys.argv[1:])]
        write_report(
            found, command=command, made_with=made_with(classifier, folds, seed), saved=saved
        )
    if not as_json:
        common.say_where("report", report)
        common.say_where("model", save)


def compare_tables(
    train: LabelledTable,
    test: LabelledTable | None = None,
    *,
    estimator: Any = "logistic",
    beta: float = 1.0,
    measure: MeasureLike = "fbeta",
    positive: Any = None,
    folds: int = 5,
    seed: int = 0,
    methods: tuple[str, ...] = (),
    progress: Any = False,
    **guarantee: Any,
) -> Comparison:
    """Compare methods on tables; `methods` are keys besides those that always take part.

    The estimator is a classifier, or the name of one. A guarantee has `constraints` and a
    `confidence_level`.
    """
    from argmaxf.cli.models import behind_preprocessing, make_classifier
    from argmaxf.comparison.auto_f import AutoFClassifier, compare_methods
    from argmaxf.comparison.methods import methods_for
    from argmaxf.estimators.labels import MultilabelStratifiedKFold
    from argmaxf.measures import as_measure

    if folds < 2:
        raise ValueError(f"folds must be at least 2, got {folds}")
    objective = as_measure(measure, beta)
    if measure == "fbeta":  # its name keeps the Python code of the report short
        measure = "f1" if beta == 1.0 else f"f{beta!r}"
    usual = [method.key for method in methods_for(None, objective)]
    classifier = make_classifier(estimator, seed) if isinstance(estimator, str) else estimator
    auto = AutoFClassifier(
        behind_preprocessing(train.X, classifier),
        measure=measure,
        methods=[*usual, *methods] if methods else None,
        cv=folds if seed == 0 else MultilabelStratifiedKFold(folds, random_state=seed),
        pos_label=positive,
        **guarantee,
    )
    found = compare_methods(
        train.X,
        train.y,
        auto,
        None if test is None else (test.X, test.y),
        names=(train.name, "" if test is None else test.name),
        groups=train.groups,
        progress=progress and (lambda done, all_, name: progress(f"fitting {name}", done, all_)),
    )
    notes = (*train.notes, *(() if test is None else test.notes))
    return replace(found, notes=(*notes, *found.notes))


def made_with(classifier: Any, folds: int, seed: int) -> str:
    """Say which classifier was compared, and how, for the report."""
    package = type(classifier).__module__.partition(".")[0]
    return f"Classifier: {package} {' '.join(repr(classifier).split())}; {folds} folds, seed {seed}"


def _fitted(comparison: Comparison, rows: LabelledTable) -> Any:
    """Return the chosen method fitted on all rows, with their groups."""
    model: Any = comparison.estimator
    step = f"{model.steps[-1][0]}__" if hasattr(model, "steps") else ""
    groups = {} if rows.groups is None else {f"{step}groups": rows.groups.to_numpy()}
    return model.fit(rows.X, rows.y, **groups)


def _as_record(comparison: Comparison, report: Path | None, save: Path | None) -> dict[str, Any]:
    """Return the comparison for programs."""
    names = ("chosen", "verdict", "reason", "notes", "beta", "rated_on", "labels")
    return {
        **{name: getattr(comparison, name) for name in names},
        "measure": str(comparison.measure),
        "methods": [
            {
                "key": each.method.key,
                "name": each.name,
                "symbol": each.method.symbol,
                "score": asdict(each.score),
                "difference": asdict(each.difference),
                **(each.counts or {}),
            }
            for each in comparison.methods
        ],
        "report": report and str(report),
        "saved": save and str(save),
    }


def _print(comparison: Comparison) -> None:
    """Print the table, with numbers no wider than they must be, and what it means."""
    chosen, rows = comparison.chosen, []
    for each in comparison.methods:
        d, counts, used = each.difference, each.counts or {}, each.name == chosen
        paired = "" if used else f"{d.value:+.3f} ± {d.high - d.value:.3f}"
        score = f"{each.score:.3f}".removesuffix(each.score.caveat)
        numbers = [text.replace("0.", ".") for text in (score, paired)]
        found = [f"{counts[cell]:,}" if counts else "" for cell in ("tp", "fp", "fn")]
        rows.append((f"{each.name}{' *' if used else ''}", *numbers, *found))
    out, paired = common.console(), f"difference to\n{chosen},\n± 95 %"  # 80 columns are enough
    caveat = comparison.method.score.caveat.replace(" ", "\n", 1)  # all have the same rows
    known = f"{comparison.score_name} 95 %{caveat}"
    head = ("method", known, paired, "found", "false", "missed")
    common.print_table(out, head, rows, bold=lambda row: row[0].endswith(" *"))
    assert comparison.evidence is not None
    rate = comparison.evidence.truth.mean(axis=0)
    rarest = " in the rarest label" if len(rate) > 1 else ""
    rated = f"{comparison.n_rows:,} rows rated ({comparison.rated_on})"
    seen = f"{rated}, {rate.min():.1%} positive{rarest}."
    named = [f"{m.method.symbol} is {m.name}" for m in comparison.methods if m.method.symbol]
    paper = (f"In the paper {', '.join(named)}.",) if named else ()
    for line in (comparison.verdict, *comparison.notes, comparison.reason, seen, *paper):
        out.print(common.shown(line))


def _without_folder(word: str) -> str:
    """Return a word of the command line without the folders of an absolute path in it."""
    option, equals, value = word.rpartition("=") if word.startswith("-") else ("", "", word)
    return option + equals + (PurePath(value).name if PurePath(value).is_absolute() else value)
