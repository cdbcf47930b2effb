"""Compiled code: never stale, cached in safe folders only, and not needed for any answer."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import argmaxf
from argmaxf._base.numba_cache import SHARED, sources_digest
from tests import ROOT
from tools import size

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
HITS = TOTAL + "; print(sum(total.dispatcher().stats.cache_hits.values()))"
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


def cached(library):
    return library / "argmaxf" / "__pycache__" / "kernels"


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
    assert len(list(cached(library).glob("*/"))) == 1  # the older ones are gone


def test_what_was_edited_after_the_process_began_is_not_cached(library):
    code = "import argmaxf.caller, os, time, argmaxf.callee\n"
    code += "os.utime(argmaxf.callee.__file__, (time.time() + 60,) * 2)\n"
    assert run(library, code + HITS) == [12.0, 0]
    assert not list(cached(library).rglob("*.nb?"))


@SLOW
def test_a_changed_rule_of_quadrature_changes_the_decision(library):
    (before,) = run(library, DECIDE)
    quadrature = library / "argmaxf" / "expected" / "quadrature.py"
    edit(quadrature, "SHORT_WEIGHT / low", "0.5 * SHORT_WEIGHT / low")
    assert run(library, DECIDE)[0] == pytest.approx(before / 2)


def test_kernels_import_nothing_that_the_digest_leaves_out():
    graph = size.import_graph(size.modules())
    kernels = {name for name, used in graph.items() if "argmaxf._base.compiled" in used}
    assert len(kernels) > 5
    for name in kernels:
        left_out = {other for other in graph[name] - kernels if other.split(".")[1] not in SHARED}
        assert left_out == set(), name
    assert sources_digest() is not None


@pytest.mark.parametrize("kind", ["nbc", pytest.param("nbi", marks=SLOW)])
@pytest.mark.parametrize("left", [0, pytest.param(40, marks=SLOW)])
def test_a_damaged_cache_is_compiled_again(library, kind, left):
    run(library, TOTAL)
    for path in cached(library).rglob(f"*.{kind}"):
        path.write_bytes(path.read_bytes()[:left])
    assert run(library, HITS) == [12.0, 0]
    assert run(library, HITS) == [12.0, 0]  # the damaged cache is gone
    assert run(library, HITS) == [12.0, 1]


def test_a_cache_that_cannot_be_written_does_not_matter(library):
    full = "from argmaxf._base import numba_cache\nfrom pathlib import Path\n"
    full += "def fail(*args, **kwargs): raise OSError(28, 'No space left on device')\n"
    full += "import os, numba; os.replace = fail\n"
    assert run(library, full + TOTAL) == [12.0]


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
    limit = "argmaxf._base.compiled.NUMBERS_IN_PYTHON"
    lines = [
        np.array(run(PACKAGE.parent, f"{CASES}{limit} = {numbers}{print_them}"))
        for numbers in (0, 10**9)
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


def test_a_long_compilation_is_announced_once(library):
    code = "import argmaxf._base.compiled as c; c._SILENT_FOR = 0.0\n" + TOTAL
    code += "\nfrom argmaxf.callee import shifted; shifted.compiled(1)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(library), capture_output=True, text=True
    )
    assert done.stdout == "12.0\n"
    assert done.stderr == "argmaxf: compiling, once for this installation …\n"


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


def test_the_cache_of_another_user_is_never_loaded(library, as_nobody, tmp_path):
    """Another user filled the folder first; neither the folder nor a file in it is used."""
    run_as_nobody, _ = as_nobody
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    settings = f"import os; os.environ['NUMBA_CACHE_DIR'] = {str(shared)!r}\n"
    assert run_as_nobody(settings + HITS) == [12.0, 0]
    assert run(library, HITS, NUMBA_CACHE_DIR=str(shared)) == [12.0, 0]
    assert list(cached(library).rglob("*.nbc"))  # beside the sources instead


@pytest.mark.parametrize(("mode", "used"), [(0o777, False), (0o775, False), (0o1777, True)])
def test_a_folder_where_others_can_replace_files_is_not_used(library, tmp_path, mode, used):
    """In a sticky folder, as /tmp is, nobody can replace a folder of ours."""
    if os.name != "posix":
        pytest.skip("modes of POSIX")
    shared = tmp_path / "shared"
    (shared / "argmaxf").mkdir(parents=True)
    (shared / "argmaxf").chmod(mode)
    assert run(library, TOTAL, NUMBA_CACHE_DIR=str(shared)) == [12.0]
    assert bool(list(shared.rglob("*.nbc"))) == used
    assert bool(list(cached(library).rglob("*.nbc"))) != used


def test_a_foreign_file_in_the_cache_keeps_it_from_being_used(library):
    if os.name != "posix" or os.getuid() != 0:
        pytest.skip("needs root, to give a file away")
    run(library, TOTAL)
    path = next(cached(library).rglob("*.nbc"))
    os.chown(path, int(NOBODY), int(NOBODY))
    assert run(library, HITS, HOME=str(library), XDG_CACHE_HOME="") == [12.0, 0]


def test_a_link_in_the_cache_keeps_it_from_being_used(library, tmp_path):
    if os.name != "posix":
        pytest.skip("links of POSIX")
    run(library, TOTAL)
    path = next(cached(library).rglob("*.nbc"))
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert run(library, HITS, HOME=str(library), XDG_CACHE_HOME="") == [12.0, 0]


@pytest.mark.parametrize(("folder", "used"), [(0o700, 1), (0o755, 0)])
def test_a_file_that_others_can_write_is_not_run(library, folder, used):
    """In a folder that nobody else can enter, the mode of a file does not matter."""
    if os.name != "posix":
        pytest.skip("modes of POSIX")
    run(library, TOTAL)
    path = next(cached(library).rglob("*.nbc"))
    path.chmod(0o666)
    for inside in (path.parent, path.parent.parent):
        inside.chmod(folder)
    assert run(library, HITS, HOME=str(library), XDG_CACHE_HOME="") == [12.0, used]


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


# ------------------------------------------------------------------ without numba

BLOCKED = "import sys; sys.modules['numba'] = None\n"


def test_without_numba_large_input_is_answered_with_one_warning(library):
    code = BLOCKED + (
        "import warnings, numpy as np, argmaxf\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    few = argmaxf.maximize_expected_f([.2, .5, .4]).k, len(said)\n"
        "    p = np.random.default_rng(0).random(25_000) ** 3\n"
        "    k = [argmaxf.maximize_expected_f(p).k for _ in range(2)]\n"
        "print(*few, *k, len(said), int('pip install numba' in str(said[0].message)))\n"
    )
    *counts, warned, helps = run(library, code)
    assert [counts[:2], warned, helps] == [[2, 0], 1, 1]
    with_numba = "import numpy as np, argmaxf; p = np.random.default_rng(0).random(25_000) ** 3"
    assert run(library, with_numba + "\nprint(argmaxf.maximize_expected_f(p).k)") * 2 == counts[2:]


def test_without_numba_infinities_are_as_compiled(library):
    (library / "argmaxf" / "odd.py").write_text(
        "import math\n"
        "from argmaxf._base.compiled import kernel\n"
        "@kernel\n"
        "def logarithm(x):\n"
        "    return math.log(x)\n"
        "@kernel\n"
        "def both(x, out):\n"
        "    out[0] += 1.0\n"
        "    return 1.0 / x - logarithm(x) + math.exp(1e3 * out[0])\n"
    )
    code = "import numpy as np\nfrom argmaxf.odd import both\nout = np.zeros(1)\n"
    code += "print(both(0.0, out), out[0])"
    assert run(library, "import warnings; warnings.simplefilter('ignore')\n" + BLOCKED + code) == [
        *(np.inf, 1.0)
    ]


def test_without_numba_the_small_half_of_the_suite_passes():
    command = [sys.executable, "-m", "tests.without_numba"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    passed = int(re.search(r"(\d+) passed", done.stdout)[1])
    assert passed > 80, done.stdout


@SLOW
def test_after_warm_up_no_process_compiles(library):
    folder = library / "cache"
    folder.mkdir(mode=0o700)
    env = environment(library, NUMBA_CACHE_DIR=str(folder))
    command = [sys.executable, "-m", "argmaxf.warm_up"]
    first = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert str(folder) in first.stdout
    files = {path: path.stat().st_mtime_ns for path in folder.rglob("*.nb?")}
    assert files
    code = """
import argmaxf, numpy as np
p = np.random.default_rng(1).random(300_000)
argmaxf.maximize_expected_f(p)
argmaxf.maximize_expected_f(p.reshape(-1, 10), average="samples")
argmaxf.ProbabilitySketch().update(p).decide()
argmaxf.LabelledSketch().update(p > 0.5, p).tune()
argmaxf.maximize_expected_f(p, measure="gmean")
argmaxf.maximize_expected_f(p[:3000], measure="fowlkes_mallows")
argmaxf.maximize_expected_f(p, min_precision=0.6, confidence_level=0.95)
"""
    again = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert (again.returncode, again.stderr) == (0, "")
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.nb?")} == files
