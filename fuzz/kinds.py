"""The kinds of attack: each draws one case, and raises if what a user is promised does not hold."""

from __future__ import annotations

from fuzz.engines import no_spark
from fuzz.on_files import damage, files, inputs, stream, writers
from fuzz.on_frames import changing, frames, spark
from fuzz.on_labels import guarantees, intervals, thresholds
from fuzz.on_levels import bands, levels, summaries
from fuzz.on_models import caches, models
from fuzz.on_numbers import archives, extremes, sketches, ties, types

KINDS = {
    "frames": frames,
    "spark": spark,
    "changing": changing,
    "files": files,
    "inputs": inputs,
    "damage": damage,
    "stream": stream,
    "writers": writers,
    "models": models,
    "caches": caches,
    "ties": ties,
    "extremes": extremes,
    "types": types,
    "sketches": sketches,
    "archives": archives,
    "levels": levels,
    "bands": bands,
    "summaries": summaries,
    "thresholds": thresholds,
    "guarantees": guarantees,
    "intervals": intervals,
}


def unavailable(kinds):
    """Return which of the kinds cannot be tried here, and why."""
    return {"spark": no_spark()} if "spark" in kinds and no_spark() else {}
