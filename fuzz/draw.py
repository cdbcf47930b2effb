"""What attacks are made of: probabilities, keys of every type, names, and damage."""

from __future__ import annotations

import string
from decimal import Decimal

import numpy as np
import pyarrow as pa

ODD = ["[", "]", "?", "*", "{", "}", "'", '"', "%", "é", " ", "\\", "$", "~", "#", ";", "\u2028"]
RESERVED = [
    f"argmaxf_{name}"
    for name in ("p", "segment", "threshold", "threshold_0", "row", "key", "text", "low", "count")
]


def probabilities(rng, n):
    """Return n of them, of some kind that matters."""
    kinds = [
        lambda: rng.random(n),
        lambda: rng.beta(0.5, 5, n),
        lambda: np.round(rng.random(n), int(rng.integers(1, 4))),
        lambda: rng.choice([0.0, 0.5, 1.0, 0.25, np.nextafter(0.5, 0), 1 - 2**-53, 5e-324], n),
        lambda: 10 ** -rng.uniform(0, 30, n),
        lambda: 1 / (1 + np.exp(-rng.normal(0, 10 ** rng.uniform(0, 1.5), n))),
        lambda: 1 - 10 ** -rng.uniform(0, 16, n),
        lambda: np.full(n, rng.random()),
        lambda: np.where(rng.random(n) < 20 / n, rng.random(n), 10 ** -rng.uniform(0, 7)),
    ]
    return kinds[rng.integers(len(kinds))]()


SPECIAL = [0.0, 1.0, 0.5, np.nextafter(0.5, 0), 1 - 1e-12, 1e-7, 0.25, 0.75, 1 / 64, 1e-12, 0.9]


def structured(rng, n):
    """Return n of them as models give them, not as random numbers do: levels, runs, extremes."""
    few = 10 ** rng.uniform(-7, 0, rng.integers(1, 6))
    share = rng.dirichlet(np.full(6, 0.3))
    kinds = [
        lambda: rng.choice(few, n, p=share[: few.size] / share[: few.size].sum()),
        lambda: 1 - rng.choice(few, n),
        lambda: rng.choice(SPECIAL, n, p=rng.dirichlet(np.full(len(SPECIAL), 0.2))),
        lambda: np.where(np.arange(n) < 1, rng.choice([1.0, 0.9, 0.01]), few[0]),
        lambda: np.where(rng.random(n) < share[0], 1 - few[0], few[-1]),
        lambda: np.round(rng.beta(0.5, 2, n), int(rng.integers(1, 3))),
        lambda: (rng.beta(0.3, 3, n)).astype(np.float16).astype(float),
        lambda: np.clip(rng.random(n), *np.sort(rng.random(2))),
    ]
    p = kinds[rng.integers(len(kinds))]()
    if rng.random() < 0.2:
        p = np.where(rng.random(n) < share[1], rng.choice([0.0, 1.0, 1e-6]), p)
    dots = rng.random(n) < rng.integers(0, 60) / n
    return np.where(dots, rng.random(n), p) if rng.random() < 0.6 else p


def name(rng, *, for_file=False):
    """Return a name with odd characters."""
    letters = [*string.ascii_letters, *ODD]
    drawn = "".join(rng.choice(letters, rng.integers(1, 8)))
    return f"x{drawn}".strip() if for_file else drawn


def names(rng, count):
    """Return different names, also in engines that do not tell cases apart."""
    found: dict[str, str] = {}
    while len(found) < count:
        drawn = rng.choice(RESERVED) if rng.random() < 0.4 else name(rng)
        found.setdefault(str(drawn).strip().lower(), str(drawn).strip())
        found.pop("", None)
        found.pop("*", None)  # all columns, for Polars and DuckDB: refused there
    return list(found.values())


def codes(rng, n):
    """Return the number of each row's segment, every number used."""
    count = int(rng.integers(1, max(2, min(n, 40))))
    drawn = np.concatenate([np.arange(min(count, n)), rng.integers(0, count, max(0, n - count))])
    return rng.permutation(drawn)


def keys(rng, code, without=()):
    """Return a column of a type that keeps segments apart by what a careless one loses."""
    count = int(code.max()) + 1
    number = np.arange(count)
    zone = str(rng.choice(["Europe/Berlin", "America/New_York", "UTC", "Asia/Kathmandu"]))
    fold = 1_729_987_200 + 900 * number  # quarters of an hour around a change of clocks
    kinds = {
        "ns": lambda: pa.array(10**18 + number, pa.timestamp("ns")),
        "ns zone": lambda: pa.array(10**18 + number, pa.timestamp("ns", zone)),
        "zone": lambda: pa.array(fold * 10**6, pa.timestamp("us", zone)),
        "seconds": lambda: pa.array(fold, pa.timestamp("s", zone)),
        "duration": lambda: pa.array(number * 1000, pa.duration("ns")),
        "time": lambda: pa.array(number, pa.time64("us")),
        "bytes": lambda: pa.array([bytes([i % 256, 0]) * (1 + i // 256) for i in number]),
        "text": lambda: pa.array([f"{i:0{1 + i % 3}}" if i % 2 else f"{i} " for i in number]),
        "large text": lambda: pa.array([f"{'{' * (i % 4)}{i}" for i in number], pa.large_string()),
        "dictionary": lambda: pa.array([f"c{i}" for i in number[::-1]]).dictionary_encode(),
        "decimal": lambda: pa.array(
            [Decimal(int(i)).scaleb(-20) for i in number], pa.decimal128(38, 20)
        ),
        "unsigned": lambda: pa.array([2**64 - 1 - int(i) for i in number], pa.uint64()),
        "large": lambda: pa.array(2**53 + number),
        "float": lambda: pa.array(1.0 + number * 2.0**-52),
        "negative": lambda: pa.array(-number.astype(np.int32)),
    }
    kind = str(rng.choice([name for name in kinds if name not in without]))
    return kind, kinds[kind]().take(pa.array(code))


def damaged(rng, good):
    """Return bytes with some of them changed, cut off or put in."""
    bad = bytearray(good)
    for _ in range(rng.integers(1, 4)):
        tail = rng.random() < 0.5
        at = len(bad) - int(rng.integers(1, min(800, len(bad)) + 1)) if tail else 0
        at = at if tail else int(rng.integers(len(bad)))
        bad[at] = rng.integers(256)
    if rng.random() < 0.1:
        bad = bad[: rng.integers(1, len(bad))]
    return bytes(bad)
