"""The architecture, kept by tests: layers, no cycles, public interfaces, sizes."""

import ast

from tools import size

# A module may import from its own layer and from the layers above it in this list.
LAYERS = [
    {"_base"},
    {"measures"},
    {"constraints", "problem", "prior"},
    {"expected", "empirical", "theory"},
    {"objectives"},
    {"torch"},
    {"frames"},
    {"files"},
    {"monitoring"},
    {"estimators"},
    {"comparison"},
    {"onnx", "saved_threshold"},
    {"displays"},
    {"report"},
    {"cli"},
    {"__main__", "warm_up"},
]
LONGEST_FUNCTION = 60  # lines of code, the docstring aside
TREES = size.modules()
GRAPH = size.import_graph(TREES)


def layer(module):
    part = module.split(".")[1]
    assert any(part in names for names in LAYERS), f"{part} has no place in LAYERS"
    return next(i for i, names in enumerate(LAYERS) if part in names)


def test_imports_point_up_the_list_of_layers():
    inside = {name: others - {"argmaxf"} for name, others in GRAPH.items() if name != "argmaxf"}
    wrong = [
        f"{name} imports {other}"
        for name, others in inside.items()
        for other in others
        if layer(other) > layer(name)
    ]
    assert wrong == []


def test_expected_and_empirical_do_not_import_each_other():
    for one, other in [("expected", "empirical"), ("empirical", "expected")]:
        for name, imported in GRAPH.items():
            if name.startswith(f"argmaxf.{one}"):
                assert not [m for m in imported if m.startswith(f"argmaxf.{other}")], name


def test_no_package_has_a_cycle_among_its_modules_and_subpackages():
    assert size.cycles(GRAPH) == []


def test_a_cycle_is_found():
    graph = {"a.b.c": {"a.d"}, "a.d": {"a.e"}, "a.e": {"a.b.f"}, "a.b.f": set(), "a.b": {"a.b.c"}}
    assert size.cycles(graph) == [["a.b", "a.d", "a.e"]]
    assert size.cycles({**graph, "a.e": set()}) == []


def private_names_of_numba(tree):
    """Yield what a module takes from numba beyond its documented names."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, size.IMPORTS) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name}" for name in names]
        for name in names:
            first, *rest = name.split(".")
            if first == "numba" and any(r in ("core", "misc") or r.startswith("_") for r in rest):
                yield name


def test_numba_is_used_by_its_public_interface_only():
    used = {name: list(private_names_of_numba(tree)) for name, tree in TREES.items()}
    assert {name: names for name, names in used.items() if names} == {}


def code_lines(function):
    """The lines of a function's body, without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return function.end_lineno - body[0].lineno + 1 if body else 0


def test_functions_are_short():
    long = [
        f"{name}: {node.name} has {code_lines(node)} lines"
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and code_lines(node) > LONGEST_FUNCTION
        if (name, node.name) != ("argmaxf.torch.triton_rows", "_decide")  # one launch for a row
    ]
    assert long == []
