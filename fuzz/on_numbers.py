"""Attacks on numbers: near ties, odd types, summaries and archives that cannot be."""

from __future__ import annotations

import gzip
import io
import tarfile
from fractions import Fraction

import numpy as np
import polars as pl

import argmaxf
from argmaxf.expected.sketch import groups_of_sketch, sketch_of_table
from argmaxf.frames import decisions
from fuzz import draw
from fuzz.asking import error_of


def ties(rng, folder):
    """k is the smallest of the best ones, in exact fractions, as an array and as a frame."""
    n = int(rng.integers(1, 9))
    grid = int(rng.choice([2, 3, 4, 5, 10, 20]))
    p = rng.integers(0, grid + 1, n) / grid
    p = np.clip(np.where(rng.random(n) < 0.3, np.nextafter(p, rng.random()), p), 0, 1)
    beta, zero = float(rng.choice([0.5, 1.0, 2.0])), float(rng.choice([0.0, 1.0]))
    curve = exact_curve(np.sort(p)[::-1], Fraction(beta) ** 2, Fraction(zero))
    best = max(curve) * (1 - Fraction(1, 10**50))
    k = next(i for i, f in enumerate(curve) if f >= best)
    found = argmaxf.maximize_expected_f(p, beta=beta, zero_division=zero)
    assert found.k == k, (p.tolist(), beta, zero, found.k, k)
    options = {"beta": beta, "zero_division": zero, "ties": "split"}
    frame = decisions(pl.DataFrame({"p": p}), "p", **options)[()]
    assert frame.k == k, (p.tolist(), beta, zero, frame.k, k)


def exact_curve(p, b2, zero):
    """f_0 … f_n of falling probabilities, in fractions."""
    chances = [Fraction(float(value)) for value in p]
    curve = []
    for k in range(len(chances) + 1):
        inside, outside = counts(chances[:k]), counts(chances[k:])
        terms = (
            a * b * ((1 + b2) * t / (k + b2 * (t + r)) if k + t + r else zero)
            for t, a in enumerate(inside)
            for r, b in enumerate(outside)
        )
        curve.append(sum(terms, Fraction(0)))
    return curve


def counts(chances):
    """P(S = s) of independent labels."""
    found = [Fraction(1)]
    for p in chances:
        found = [a * (1 - p) + b * p for a, b in zip([*found, 0], [0, *found], strict=True)]
    return found


def extremes(rng, folder):
    """k is the best one for every β and spread, in exact fractions."""
    n = int(rng.integers(2, 10))
    p = np.sort(draw.probabilities(rng, n))[::-1]
    beta = 10.0 ** int(rng.integers(-9, 10))
    curve = exact_curve(p, Fraction(beta) ** 2, Fraction(0))
    best = max(curve) * (1 - Fraction(1, 10**50))
    k = next(i for i, f in enumerate(curve) if f >= best)
    found = argmaxf.maximize_expected_f(p, beta=beta)
    assert found.k == k, (p.tolist(), beta, found.k, k)
    assert np.isclose(found.expected, float(curve[k]), rtol=1e-12, atol=1e-300), (found, curve[k])


def types(rng, folder):
    """Numbers of every type are their values in double precision; what is missing is refused."""
    import ml_dtypes
    import pandas as pd

    n = int(rng.integers(1, 60)) if rng.random() < 0.5 else 17_000
    p = np.round(rng.random(n) * 256) / 256  # exact in every type, bfloat16 too
    fine = p * (1 - rng.random(n) * np.longdouble(2) ** -56)  # p in double precision
    masked = np.ma.array(p, mask=rng.random(n) < 0.3)
    forms = {
        "half": lambda: p.astype(np.float16),
        "single": lambda: p.astype(">f4"),
        "bfloat16": lambda: p.astype(ml_dtypes.bfloat16),
        "longdouble": lambda: fine,
        "masked": lambda: masked,
        "fractions": lambda: [Fraction(v) for v in p.tolist()],
        "objects": lambda: p.astype(object),
        "nullable": lambda: pd.array(p, dtype="Float64"),
        "with NA": lambda: pd.array([*p, None], dtype="Float64"),
        "Polars with null": lambda: pl.Series([*p, None]),
        "strided": lambda: np.repeat(p, 3)[::3],
    }
    kind = str(rng.choice(list(forms)))
    expected = argmaxf.maximize_expected_f(p)
    missing = "NA" in kind or "null" in kind.split() or (kind == "masked" and masked.mask.any())
    said = error_of(lambda: argmaxf.maximize_expected_f(forms[kind]()))
    assert bool(said) == missing, (kind, n, said)
    if not missing:
        found = argmaxf.maximize_expected_f(forms[kind]())
        assert found.k == np.count_nonzero(found.selected) == expected.k, (kind, n, found, expected)
        assert (found.selected == expected.selected).all(), (kind, n)


def sketches(rng, folder):
    """Bytes with a right checksum are a possible summary, or refused."""
    sketch = argmaxf.ProbabilitySketch.from_array(
        draw.probabilities(rng, int(rng.integers(1, 2_000)))
    )
    table = sketch._table.copy()
    used = np.flatnonzero(table[:, 0])
    row, column = int(rng.choice(used)), int(rng.integers(8))
    table[row, column] = (table[row, column] + rng.normal()) * 10 ** rng.uniform(-1, 3)
    data = sketch_of_table(table).to_bytes()
    assert argmaxf.ProbabilitySketch.from_bytes(sketch.to_bytes()).n == sketch.n
    try:
        found = argmaxf.ProbabilitySketch.from_bytes(data).decide()
    except ValueError:
        return
    assert -1e-9 <= found.expected <= 1 + 1e-9, found
    assert 0 <= found.k <= found.n, found
    assert 0 <= found.std <= 0.5 + 1e-9, found
    assert found.n == table[:, 0].sum(), found
    groups = groups_of_sketch(argmaxf.ProbabilitySketch.from_bytes(data))
    slack = 1e-9 * groups.count * groups.high
    assert (groups.mass >= groups.count * groups.low - slack).all(), "items below their group"
    assert (groups.mass <= groups.count * groups.high + slack).all(), "items above their group"
    mean = argmaxf.ProbabilitySketch.from_bytes(data).mean_positives
    assert -1e-6 <= mean <= found.n * (1 + 1e-9), (mean, found)


def archives(rng, folder):
    """A damaged archive is refused in one sentence, or read whole."""
    from reproduction.datasets import read_archive, sha256_of

    content = rng.integers(0, 64, 20_000).astype(np.uint8).tobytes()
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w|") as archive,
    ):
        info = tarfile.TarInfo("one.sgm")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    path = folder / "a.tar.gz"
    path.write_bytes(draw.damaged(rng, packed.getvalue()))
    found: list[str] = []
    said = error_of(lambda: found.extend(read_archive(path, {"one.sgm": sha256_of(content)})))
    assert "is corrupted" in said if said else found == [content.decode("latin-1")], said
