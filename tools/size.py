"""The size and shape of the library: tables by package, the import graph, and what repeats.

`python tools/size.py` prints the table by package (modules, lines, statements without imports), the
modules that only one other module imports, file stems in more than one package, module constants
that share a name, and cycles between packages. `tests/test_layout.py` keeps the limits.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "argmaxf"
IMPORTS = (ast.Import, ast.ImportFrom)
Graph = dict[str, set[str]]


def modules(package: Path = PACKAGE) -> dict[str, ast.Module]:
    """Return the syntax tree of every module, by its dotted name."""
    return {
        _name(package, path): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(package.rglob("*.py"))
    }


def _name(package: Path, path: Path) -> str:
    parts = (package.name, *path.relative_to(package).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


def import_graph(trees: dict[str, ast.Module]) -> Graph:
    """Return which modules each module imports, at its top or inside a function."""
    return {name: set(_imports(trees, tree)) - {name} for name, tree in trees.items()}


def _imports(trees: dict[str, ast.Module], tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in trees)
        elif isinstance(node, ast.ImportFrom) and node.module in trees:
            whole = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            inside = [full for full in whole.values() if full in trees]
            yield from inside
            if len(inside) < len(whole):
                yield node.module


def cycles(graph: Graph) -> list[list[str]]:
    """Return the groups of siblings that import each other, at every level of packages.

    The children of a package are its modules and subpackages; a subpackage imports whatever one of
    its modules imports. A package's own `__init__` gathers names and does not count.
    """
    found = []
    for package in sorted({name.rpartition(".")[0] for name in graph} - {""}):
        edges: Graph = defaultdict(set)
        for name, others in graph.items():
            child = _child(package, name)
            if child:
                edges[child] |= {c for o in others if (c := _child(package, o)) and c != child}
        found += [[f"{package}.{child}" for child in group] for group in _knots(edges)]
    return found


def _child(package: str, name: str) -> str:
    """Return the child of a package that a module is or lies in; empty where it is elsewhere."""
    return name.removeprefix(package + ".").split(".")[0] if name.startswith(package + ".") else ""


def _knots(edges: Graph) -> list[list[str]]:
    """Return the strongly connected groups of two or more."""
    reach = {start: _reachable(edges, start) for start in edges}
    groups = {
        tuple(sorted(b for b in reach[a] if a in reach.get(b, ()))) for a in edges if a in reach[a]
    }
    return [list(group) for group in sorted(groups)]


def _reachable(edges: Graph, start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = edges.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def one_importer(graph: Graph) -> dict[str, str]:
    """Return the modules that exactly one other module imports, with it; packages aside.

    A package's `__init__` that only gathers public names counts as an importer as any other does.
    """
    packages = {name.rpartition(".")[0] for name in graph}
    importers = {name: [m for m in graph if name in graph[m]] for name in set(graph) - packages}
    return {name: found[0] for name, found in sorted(importers.items()) if len(found) == 1}


def repeated_stems(trees: Iterable[str], most: int = 1) -> dict[str, list[str]]:
    """Return the file stems that lie in more packages than `most`."""
    homes: dict[str, list[str]] = defaultdict(list)
    packages = {name.rpartition(".")[0] for name in trees}
    for name in trees:
        if name not in packages:
            homes[name.rpartition(".")[2]].append(name)
    return {stem: names for stem, names in sorted(homes.items()) if len(names) > most}


def shared_constants(trees: dict[str, ast.Module]) -> dict[str, dict[str, str]]:
    """Return the constants that several modules define under one name, with their values."""
    homes: dict[str, dict[str, str]] = defaultdict(dict)
    for module, tree in trees.items():
        for node in tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.AnnAssign) and node.value:
                targets = [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and target.id.lstrip("_").isupper():
                    homes[target.id][module] = ast.unparse(node.value)
    return {name: places for name, places in sorted(homes.items()) if len(places) > 1}


def statements(tree: ast.Module) -> int:
    """Return the number of statements, imports aside."""
    nodes = ast.walk(tree)
    return sum(isinstance(node, ast.stmt) and not isinstance(node, IMPORTS) for node in nodes)


def table(package: Path = PACKAGE) -> dict[str, tuple[int, int, int]]:
    """Return modules, lines and statements by package, and in all."""
    rows: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        parts = path.relative_to(package).parts
        counts = (1, text.count("\n"), statements(ast.parse(text)))
        for key in (parts[0] if len(parts) > 1 else "(top)", "(all)"):
            rows[key] = [a + b for a, b in zip(rows[key], counts, strict=True)]
    return {key: (row[0], row[1], row[2]) for key, row in sorted(rows.items())}


def main(package: Path = PACKAGE) -> None:
    """Print everything."""
    trees = modules(package)
    graph = import_graph(trees)
    print(f"{'package':15}{'modules':>8}{'lines':>8}{'statements':>12}")
    for key, row in table(package).items():
        print(f"{key:15}{row[0]:8}{row[1]:8}{row[2]:12}")
    lonely = one_importer(graph)
    print(f"\n{len(lonely)} modules with one importer")
    for name, importer in lonely.items():
        print(f"  {name} <- {importer}")
    print("\nstems in more than one package")
    for stem, names in repeated_stems(trees).items():
        print(f"  {stem} x{len(names)}: {', '.join(names)}")
    shared = shared_constants(trees)
    print(f"\n{len(shared)} constants that share a name")
    for name, places in shared.items():
        print(f"  {name} x{len(places)}: " + "; ".join(f"{m} = {v}" for m, v in places.items()))
    print("\ncycles between siblings")
    for group in cycles(graph):
        print(f"  {', '.join(group)}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
