"""Compiled code: never stale, kept where it can be, and no worse where it cannot."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import argmaxf
from argmaxf._base.digests import modules_behind, source_file, sources_digest

PACKAGE = Path(argmaxf.__file__).parent
SLOW = pytest.mark.slow
NOBODY = "65534"
CALLEE = """
from argmaxf._base.compiled import kernel
STEP = 1.0
@kernel
def shifted(x):
    return x + STEP
"""
CALLER = """
from argmaxf._base.compiled import kernel
from argmaxf.callee import shifted
@kernel
def total(x):
    return shifted(x) + 10.0
"""
TOTAL = "from argmaxf.caller import total; print(total.compiled(1.0))"
HITS = TOTAL + "; print(sum(total.compiled.stats.cache_hits.values()))"
DECIDE = "import argmaxf; print(argmaxf.maximize_expected_f([.2, .5]).expected)"


@pytest.fixture
def library(tmp_path):
    """A folder with a copy of argmaxf that has two small kernels, one calling the other."""
    copy = tmp_path / "lib" / "argmaxf"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "callee.py").write_text(CALLEE)
    (copy / "caller.py").write_text(CALLER)
    return copy.parent


def environment(library, **extra):
    kept = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    own = {"PYTHONPATH": str(library), "PYTHONDONTWRITEBYTECODE": "1"}
    return kept | own | extra


def run(library, code, *before, **extra):
    command = [*before, sys.executable, "-c", code]
    env = environment(library, **extra)
    done = subprocess.run(command, env=env, cwd=library, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [float(word) for word in done.stdout.split()]


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


# ------------------------------------------------------------------ never stale


def test_a_changed_callee_gives_the_new_answer(library):
    assert run(library, HITS) == [12.0, 0]
    assert run(library, HITS) == [12.0, 1]
    edit(library / "argmaxf" / "callee.py", "x + STEP", "x - STEP")
    assert run(library, HITS) == [10.0, 0]
    edit(library / "argmaxf" / "callee.py", "STEP = 1.0", "STEP = 5.0")
    assert run(library, HITS) == [6.0, 0]
    kept = [path.name for path in (library / "argmaxf" / "__pycache__" / "kernels").iterdir()]
    assert len([name for name in kept if "total" in name]) == 1  # the older ones are gone


@SLOW
def test_a_changed_rule_of_quadrature_changes_the_decision(library):
    (before,) = run(library, DECIDE)
    nodes = library / "argmaxf" / "expected" / "nodes.py"
    edit(nodes, "SHORT_WEIGHT / low", "0.5 * SHORT_WEIGHT / low")
    assert run(library, DECIDE)[0] == pytest.approx(before / 2)


def test_sources_are_followed_through_imports_however_deep():
    modules = [
        ".".join(("argmaxf", *path.relative_to(PACKAGE).with_suffix("").parts))
        for path in PACKAGE.rglob("*kernels.py")
    ]
    assert modules
    for module in modules:
        assert "argmaxf._base.compiled" in modules_behind(module)
        assert sources_digest(module) is not None
    assert source_file("argmaxf.expected") == PACKAGE / "expected" / "__init__.py"
    assert source_file("argmaxf.not_there") is None


READ_AGAIN = """
import sys
import numpy as np
from argmaxf.lean import total
print(total.compiled(np.array([2.0, 3.0])))
print(*(int(name in sys.modules) for name in ("numba.np.arraymath", "scipy.linalg", "cffi")))
print(total.compiled(np.array([1, 4])))
"""


def test_kept_code_is_read_without_what_compiles_it(library):
    """The half of numba that only compiles, and SciPy behind it, take longer than all the rest."""
    (library / "argmaxf" / "lean.py").write_text(
        "from argmaxf._base.compiled import kernel\n@kernel\ndef total(x):\n    return x.sum()\n"
    )
    run(library, "import numpy as np\nfrom argmaxf.lean import total\ntotal.compiled(np.ones(3))")
    assert run(library, READ_AGAIN) == [5.0, 0, 0, 0, 5.0]  # and then compiles for integers


DAMAGE = {
    "changed": lambda content: content[:-9] + b"x" * 9,
    "cut": lambda content: content[:-9],
    "emptied": lambda content: b"",
}


@pytest.mark.parametrize(
    "kind", ["changed", *(pytest.param(k, marks=SLOW) for k in ("cut", "emptied"))]
)
def test_damaged_code_is_compiled_again(library, kind):
    run(library, TOTAL)
    (kept,) = (library / "argmaxf" / "__pycache__" / "kernels").glob("*total*")
    kept.write_bytes(DAMAGE[kind](kept.read_bytes()))
    assert run(library, HITS) == [12.0, 0]


# ------------------------------------------------------------------ quick from the first call

CASES = """
import json, sys
import numpy as np
import argmaxf
import argmaxf._base.compiled

def cases(sizes):
    rng = np.random.default_rng(0)
    extremes = [0.0, 1.0, 1e-300, 5e-324, 1e-17, 0.5, 1 - 2.0**-53, 1e-9]
    for n in sizes:
        for beta in (1.0, 1e-9, 0.3, 3.0, 1e9):
            yield beta, rng.random(n)
            yield beta, rng.random(n) ** 8
            yield beta, rng.choice(extremes, n)
            yield beta, np.full(n, rng.random())
    if max(sizes) > 100:
        yield 1.0, np.random.default_rng(1).random(1500) ** 3

def answers(*sizes):
    for beta, p in cases(sizes):
        for measure in ("fbeta", "jaccard"):
            if measure == "jaccard" and beta != 1.0:
                continue
            d = argmaxf.maximize_expected_f(p, beta=beta, measure=measure)
            half = argmaxf.expected_f(p, p >= 0.5, beta=beta, measure=measure)
            yield d.k, d.threshold, d.expected, d.std, *half
"""


def test_the_first_answers_need_no_numba():
    code = "import sys, argmaxf; print(argmaxf.maximize_expected_f([.2, .5, .4]).k, "
    assert run(PACKAGE.parent, code + "'numba' in sys.modules and 1 or 0)") == [2, 0]


@pytest.mark.parametrize("sizes", [(1, 2, 3, 8), pytest.param((40, 150), marks=SLOW)])
def test_python_and_compiled_code_give_the_same_answers(sizes):
    print_them = f"\nfor answer in answers{sizes}: print(*map(float, answer))"
    lines = [
        np.array(
            run(PACKAGE.parent, f"{CASES}argmaxf._base.compiled.ENOUGH = {enough}{print_them}")
        )
        for enough in (0, 10**9)
    ]
    compiled, python = (a.reshape(-1, 6) for a in lines)
    assert len(compiled) >= 24 * len(sizes)
    np.testing.assert_array_equal(python[:, :2], compiled[:, :2])  # k and threshold
    np.testing.assert_allclose(python[:, [2, 4]], compiled[:, [2, 4]], rtol=1e-12)
    np.testing.assert_allclose(python[:, [3, 5]], compiled[:, [3, 5]], rtol=1e-7, atol=1e-9)


def test_what_python_refuses_is_compiled(library):
    (library / "argmaxf" / "odd.py").write_text(
        "from argmaxf._base.compiled import kernel\n"
        "@kernel\n"
        "def inverse(x, out):\n"
        "    out[0] += 1.0\n"
        "    return 1.0 / x\n"
    )
    code = "import numpy as np\nfrom argmaxf.odd import inverse\nout = np.zeros(1)\n"
    assert run(library, code + "print(inverse(2.0, out), inverse(0.0, out), out[0])") == [
        *(0.5, np.inf, 2.0)
    ]


HEAVY = """
import numpy as np
import argmaxf._base.compiled
from argmaxf.heavy import heavy
argmaxf._base.compiled.ENOUGH, argmaxf._base.compiled.PATIENCE = 10, 3
few, many = np.ones(5), np.ones(50)
"""


def test_what_takes_long_to_compile_is_passed_over_at_first(library):
    (library / "argmaxf" / "heavy.py").write_text(
        "from argmaxf._base.compiled import kernel\n@kernel\ndef heavy(x):\n    return x.sum()\n"
    )
    code = HEAVY + "print(*(int(heavy.is_ready(x)) for x in (few, many, many, many, many, many)))\n"
    assert run(library, code) == [1, 0, 0, 0, 1, 1]
    run(library, HEAVY + "heavy.compiled(many)")
    other = "print(int(heavy.is_ready(many.astype(np.float32))), int(heavy.is_ready(many)))\n"
    assert run(library, HEAVY + other) == [0, 1]  # of the kind that is kept


@SLOW
def test_the_first_million_does_not_wait_for_the_large_loop(library):
    code = "import argmaxf, numpy as np; print(argmaxf.maximize_expected_f(np.full(2**20, 0.25)).k)"
    assert run(library, code) == [2**20]
    kept = [path.name for path in (library / "argmaxf" / "__pycache__" / "kernels").iterdir()]
    assert any(".summarize-" in name for name in kept)
    assert not any(".decide_large-" in name for name in kept)


# ------------------------------------------------------------------ nowhere to write


@pytest.fixture
def as_nobody(library, tmp_path):
    """Run code as a user who can read everything, and write nothing but `tmp`."""
    if os.name != "posix" or os.getuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv, to become another user")
    temporary = tmp_path / "tmp"
    temporary.mkdir(mode=0o777)
    temporary.chmod(0o1777)
    reading = ["--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"]
    become = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", *reading]

    def run_as_nobody(code, tmpdir=temporary):
        return run(library, code, *become, HOME="/nonexistent", TMPDIR=str(tmpdir))

    return run_as_nobody, temporary


def test_without_a_home_compiled_code_is_kept_in_a_temporary_folder(as_nobody):
    run_as_nobody, temporary = as_nobody
    assert run_as_nobody(HITS) == [12.0, 0]
    assert run_as_nobody(HITS) == [12.0, 1]
    (folder,) = temporary.glob("argmaxf-*")
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_temporary_folder_that_others_can_write_to_is_not_trusted(as_nobody):
    run_as_nobody, temporary = as_nobody
    (temporary / f"argmaxf-{NOBODY}").mkdir()
    (temporary / f"argmaxf-{NOBODY}").chmod(0o777)
    assert run_as_nobody(HITS) == [12.0, 0]
    assert run_as_nobody(HITS) == [12.0, 0]
    assert not list((temporary / f"argmaxf-{NOBODY}").iterdir())


def test_code_compiled_by_the_owner_serves_those_who_cannot_write(library, as_nobody):
    run(library, TOTAL)
    assert as_nobody[0](HITS) == [12.0, 1]


def nowhere(code, library):
    """The code, where the temporary folder cannot be written to either."""
    return f"import tempfile; tempfile.tempdir = {str(library)!r}\n{code}"


def test_where_nothing_at_all_can_be_written(library, as_nobody):
    assert as_nobody[0](nowhere(HITS, library)) == [12.0, 0]


@SLOW
def test_a_decision_where_nothing_at_all_can_be_written(library, as_nobody):
    expected = as_nobody[0](nowhere(DECIDE, library))
    assert expected == pytest.approx(run(library, DECIDE))


# ------------------------------------------------------------------ several processes


def test_two_processes_at_once(library):
    command = [sys.executable, "-c", TOTAL]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    both = [subprocess.Popen(command, env=environment(library), **pipes) for _ in range(2)]
    assert [process.communicate()[0] for process in both] == ["12.0\n", "12.0\n"]
    assert run(library, HITS) == [12.0, 1]


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=SLOW)])
def test_workers(library, method):
    if method == "fork" and not hasattr(os, "fork"):
        pytest.skip("no fork here")
    (library / "work.py").write_text(
        "import multiprocessing as mp\n"
        "from argmaxf.caller import total\n"
        "def work(x):\n"
        "    return total.compiled(x)\n"
        "if __name__ == '__main__':\n"
        "    total.compiled(1.0)\n"
        f"    with mp.get_context('{method}').Pool(2) as pool:\n"
        "        print(*pool.map(work, [1.0, 2.0]))\n"
    )
    done = subprocess.run(
        [sys.executable, "work.py"],
        env=environment(library),
        cwd=library,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["12.0", "13.0"], done.stderr
