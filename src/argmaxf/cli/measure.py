"""What --measure takes: a name of the registry, with its parameters after a colon."""

from __future__ import annotations

from dataclasses import fields

from argmaxf.measures import MEASURES, MeasureLike

HELP = f"one of {', '.join(MEASURES)}; parameters follow a colon, as in tversky:0.3,0.7"


def measure_named(text: str) -> MeasureLike:
    """Return what a command was asked to measure.

    >>> measure_named("tversky:0.3,0.7")
    Tversky(a=0.3, b=0.7)
    """
    name, colon, rest = text.partition(":")
    if name not in MEASURES:
        raise ValueError(f"--measure must be {HELP}; got {text!r}")
    if not colon:
        return name
    taken = [] if name == "f1" else [field.name for field in fields(MEASURES[name])]  # type: ignore[arg-type]
    try:
        numbers = [float(each) for each in rest.split(",")]
    except ValueError:
        numbers = []
    if not 0 < len(numbers) <= len(taken):
        takes = f"numbers for {', '.join(taken)}" if taken else "no parameters"
        raise ValueError(f"--measure {name} takes {takes}; got {text!r}")
    return MEASURES[name](*numbers)
