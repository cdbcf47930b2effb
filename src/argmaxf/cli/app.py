"""The command line: which commands there are, the smallest of them, and one way to fail."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from tempfile import TemporaryFile
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from argmaxf import __version__
from argmaxf.cli.common import console, plain, print_json, print_table, with_parameters
from argmaxf.cli.compare import compare
from argmaxf.cli.demo import demo
from argmaxf.cli.deployment import estimate, label_plan, monitor
from argmaxf.cli.scored_files import decide, evaluate, merge, sketch, tune

NARROW = 80  # columns under which the boxes of help would cut options off in the middle
MOST = 10_000_000  # rows; a bound that needs more says nothing that could be of use
RATES = (0.001, 0.01, 0.05, 0.1, 0.3, 0.5)


def bounds(
    n: int,
    positive_rate: float,
    beta: float = 1.0,
    eta: float = 0.05,
    vc_dimension: int = 1,
    accuracy: float = 0.05,
    as_json: bool = False,
) -> None:
    """Bound the distance of F on n examples from its limit, and say how many are needed."""
    from argmaxf.theory import deviation_bound, regret_bound, sample_size

    bound = {
        "lemma_2": deviation_bound(n, positive_rate, beta, eta),
        "theorem_3": regret_bound(n, vc_dimension, positive_rate, beta, eta),
    }
    needed = {
        rate: {
            "lemma_2_begins": sample_size(math.inf, rate, beta, eta),
            "lemma_2": sample_size(accuracy, rate, beta, eta),
            "theorem_3": sample_size(accuracy, rate, beta, eta, vc_dimension=vc_dimension),
        }
        for rate in sorted({*RATES, positive_rate})
    }
    if as_json:
        found = {k: {"bound": b.value, "reason": b.reason or None} for k, b in bound.items()}
        sizes = [{"positive_rate": rate, **sizes} for rate, sizes in needed.items()]
        print_json({**found, "needed": sizes})
        return
    out = console()
    out.print(f"n = {n:,}, positive rate {positive_rate:g}, β = {beta:g}, η = {eta:g}")
    meaning = (
        f"with probability {1.0 - eta:g}, F measured on them is within {{:.3g}} of its limit.",
        "with the same probability, training for F loses at most {:.3g} (VC dimension "
        f"{vc_dimension}).",
    )
    for name, text, each in zip(("Lemma 2", "Theorem 3"), meaning, bound.values(), strict=True):
        if each.reason:
            least = min(needed[positive_rate]["lemma_2_begins"], MOST)
            out.print(f"{name} does not apply: it needs at least {least:,} examples.")
        elif each.value >= 1.0:
            out.print(
                f"{name} gives no information: its bound is {each.value:.3g}, and F is at most 1."
            )
        else:
            out.print(f"{name}: {text.format(each.value)}")
    head = ("positive rate", "Lemma 2 applies from", "Lemma 2", "Theorem 3")
    rows = [
        (f"{rate:g}", *(f"{n:,}" if n <= MOST else f"> {MOST:,}" for n in sizes.values()))
        for rate, sizes in needed.items()
    ]
    title = f"Examples needed for a difference of {accuracy:g}"
    print_table(out, head, rows, texts=0, bold=lambda r: r[0] == f"{positive_rate:g}", title=title)
    out.print(
        "Both bounds are loose: the experiments in reproduction/ find deviations of about a tenth "
        "of Lemma 2's bound and less than a hundredth of Theorem 3's."
    )


EXAMPLES: dict[Callable[..., None], str] = {
    demo: "argmaxf demo",
    decide: "argmaxf decide scores.csv -p probability -o labels.csv",
    tune: "argmaxf tune labelled.parquet --label y --score s",
    evaluate: "argmaxf evaluate labelled.csv --label y --predicted label",
    sketch: "argmaxf sketch monday.parquet -p probability -o monday.argmaxf",
    merge: "argmaxf merge monday.argmaxf tuesday.argmaxf -o week.argmaxf",
    compare: "argmaxf compare train.csv --target churn --report report.html",
    monitor: "argmaxf monitor reference.parquet daily/*.parquet -p p --threshold 0.3 --time day",
    label_plan: "argmaxf label-plan scores.csv -p p --threshold 0.3 --budget 200 -o plan.csv",
    estimate: "argmaxf estimate plan.csv",
    bounds: "argmaxf bounds --n 10000 --positive-rate 0.1",
}


class _Flags:
    """Help lists flags without a value to give."""

    def get_params(self, context: Any) -> list[Any]:
        """Return the parameters, flags without a type."""
        params: list[Any] = super().get_params(context)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class _Command(_Flags, TyperCommand):
    pass


class _Group(_Flags, TyperGroup):
    pass


app = typer.Typer(
    name="argmaxf",
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
for command, example in EXAMPLES.items():
    about = app.command(cls=_Command, short_help=command.__doc__, epilog=f"Example: {example}")
    about(with_parameters(command))


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """The predictions with the highest F-measure: exact, fast, for any beta."""
    if version:
        typer.echo(f"argmaxf {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit code: 0, 2 for bad input, 130 for Ctrl-C."""
    app.rich_markup_mode = None if shutil.get_terminal_size().columns < NARROW else "rich"
    try:
        words = sys.argv[1:] if arguments is None else arguments
        if not all(map(str.isascii, words)):
            from argmaxf.files.inputs import refuse_names

            refuse_names(words)
        code = app(arguments, standalone_mode=False)
    except (typer.TyperException, ValueError, OSError) as error:
        _complain(error.format_message() if isinstance(error, typer.TyperException) else error)
        return 2
    except (KeyboardInterrupt, typer.Abort):
        _complain("stopped")
        return 130
    except BaseException as error:
        if type(error).__module__.startswith("polars"):  # not foreseen where it happened
            _complain(f"the data cannot be used: {error}")
            return 2
        raise
    return code if isinstance(code, int) else 0


def _complain(message: object) -> None:
    """Print an error as one line."""
    print("argmaxf: " + plain(" ".join(str(message).split())), file=sys.stderr)


def without_panics(run: Callable[[], int]) -> int:
    """Run something; print what compiled code writes to the standard error only at the end.

    All but panics: a damaged file makes Polars print many lines before it raises, and the command
    says what is wrong in one.
    """
    try:
        kept = os.dup(2)
    except OSError:  # there is no standard error
        return run()
    with TemporaryFile() as noise, os.fdopen(kept, "w", 1, "utf-8", "backslashreplace") as stderr:
        os.dup2(noise.fileno(), 2)
        try:
            with redirect_stderr(stderr):
                return run()
        finally:
            stderr.flush()
            os.dup2(kept, 2)
            noise.seek(0)
            if b"panicked at" not in (text := noise.read()):
                with suppress(OSError):
                    os.write(2, text)
