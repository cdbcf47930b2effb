"""Ways to ask argmaxf: the command in this process, arrays segment by segment, refusals."""

from __future__ import annotations

import contextlib
import io

import numpy as np

import argmaxf


def command(*words, stdin=None):
    """Run the command here; return its exit code and what it printed."""
    from unittest.mock import patch

    from argmaxf.cli.app import run

    given = io.TextIOWrapper(io.BytesIO(stdin)) if stdin is not None else None
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch("sys.stdin", given) if given else contextlib.nullcontext(),
    ):
        code = run([str(word) for word in words])
    notice = "argmaxf: compiling, once for this installation …\n"
    return code, out.getvalue(), err.getvalue().replace(notice, "")


def refused(*words):
    """Run the command, which must refuse its input in one line; return it."""
    code, out, err = command(*words)
    assert (code, out, err.count("\n")) == (2, "", 1), (code, out, err)
    return err


def error_of(action):
    """Return what a ValueError says, or None."""
    try:
        action()
    except ValueError as error:
        return str(error)
    return None


def labels_by(p, code, **problem):
    """Decide each segment as an array."""
    label = np.zeros(p.size, bool)
    for s in np.unique(code):
        label[code == s] = argmaxf.maximize_expected_f(p[code == s], **problem).selected
    return label
