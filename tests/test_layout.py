"""The architecture, kept by tests: imports point down, the wings and the paper stay apart."""

import ast
from pathlib import Path

import argmaxf

PACKAGE = Path(argmaxf.__file__).parent

# A module may import from its own layer and from the layers above it in this list.
LAYERS = [
    {"_base"},
    {"measures"},
    {"metric", "constraints", "problem", "prior"},
    {"expected", "empirical", "theory"},
    {"torch"},
    {"frames"},
    {"files"},
    {"estimators"},
    {"comparison"},
    {"displays"},
    {"report"},
    {"paper"},
    {"datasets", "cli"},
    {"__main__"},
]


LONGEST_MODULE = 450
LONGEST_FUNCTION = 60  # lines of code, the docstring aside


def layer(part):
    assert any(part in names for names in LAYERS), f"{part} has no place in LAYERS"
    return next(i for i, names in enumerate(LAYERS) if part in names)


def imported_parts(path):
    """The parts of argmaxf that a file imports, at its top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "argmaxf":
                names = [f"argmaxf.{a.name}" for a in node.names if a.name != "__version__"]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (n.split(".")[1] for n in names if n.startswith("argmaxf."))


def test_imports_point_down():
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        wrong += [
            f"{path.name} imports {other}"
            for other in imported_parts(path)
            if layer(other) > layer(part)
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
    assert others == {"cli/reproduce.py", "datasets.py"}


def code_lines(function):
    """The lines of a function's body, without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return function.end_lineno - body[0].lineno + 1 if body else 0


def test_modules_and_functions_fit_in_a_head():
    long = []
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if text.count("\n") > LONGEST_MODULE:
            long.append(f"{path.name} has {text.count(chr(10))} lines")
        long += [
            f"{path.name}: {node.name} has {code_lines(node)} lines"
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef) and code_lines(node) > LONGEST_FUNCTION
        ]
    assert long == []


def test_no_two_classes_have_one_name():
    homes = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}
