"""The architecture, kept by tests: imports point down, and importing argmaxf stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import argmaxf

PACKAGE = Path(argmaxf.__file__).parent

# A module may import from its own layer and from the layers above it in this list.
LAYERS = [
    {"validation", "whole", "sources"},
    {"compiled"},
    {"metric"},
    {"expected", "empirical", "theory"},
    {"frames"},
    {"files"},
    {"estimators"},
    {"displays"},
    {"report"},
    {"paper"},
    {"commands", "datasets"},
    {"cli"},
]
HEAVY = ["numba", "matplotlib", "pandas", "polars", "pyarrow", "duckdb", "dask", "pyspark", "typer"]


def layer(part):
    return next(i for i, names in enumerate(LAYERS) if part in names)


def imported_parts(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "argmaxf":
                names = [f"argmaxf.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (n.split(".")[1] for n in names if n.startswith("argmaxf.") and n.count("."))


def test_imports_point_down():
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        wrong += [
            f"{path.name} imports {other}"
            for other in imported_parts(path)
            if other not in argmaxf.__all__ and layer(other) > layer(part)
        ]
    assert wrong == []


def test_wings_do_not_know_each_other():
    for wing, other in [("expected", "empirical"), ("empirical", "expected")]:
        for path in (PACKAGE / wing).rglob("*.py"):
            assert other not in set(imported_parts(path)), f"{path.name} imports {other}"


def test_the_paper_is_imported_by_its_command_and_its_public_name_only():
    others = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] != "paper" and "paper" in imported_parts(path)
    }
    assert others == {"commands/reproduce.py", "datasets.py"}


def test_import_is_light():
    code = f"import sys, argmaxf; print([m for m in {HEAVY} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_public_names_exist_and_are_documented():
    for name in argmaxf.__all__:
        assert getattr(argmaxf, name).__doc__, f"{name} has no docstring"
