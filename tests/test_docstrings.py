"""Every public function, class and method says what each of its parameters is: numpydoc, one style.

    beta : float, default=1.0
        Weight of recall against precision.

The type comes first, one of `TYPES` or a class, then the shape, then `default=` or `optional` where
the parameter may be left out; the sentence below it says what the parameter means.
"""

import dataclasses
import functools
import inspect
import re

import pytest
from numpydoc.docscrape import ClassDoc, FunctionDoc

import argmaxf

TYPES = (
    *("float", "int", "bool", "str", "bytes", "array-like", "ndarray", "sparse matrix", "sequence"),
    *("callable", "dict", "mapping", "list", "tuple", "object", "estimator", "frame", "path-like"),
    *("None", "scalar", "label", "iterable", "classifier"),
)
A_TYPE = re.compile(rf"({'|'.join(TYPES)})\b|{{.+}}|[A-Z]\w*[a-z]\w*\b")


def members():
    """Every public thing with a name of its own: (name, thing)."""
    for name in argmaxf.__all__:
        thing = getattr(argmaxf, name)
        if inspect.ismodule(thing):
            yield from ((f"{name}.{n}", getattr(thing, n)) for n in thing.__all__)
        elif name != "__version__":
            yield name, thing


def functions():
    """Every public function and method: (name, callable)."""
    for name, thing in members():
        if inspect.isclass(thing):
            yield from ((f"{name}.{n}", method) for n, method in methods(thing))
        elif callable(thing):
            yield name, thing


def methods(cls):
    """The public methods a class has from argmaxf, its own or inherited."""
    for name in dir(cls):
        attribute = inspect.getattr_static(cls, name)
        method = getattr(attribute, "__func__", attribute)  # a classmethod or staticmethod
        if not inspect.isfunction(method):
            method = getattr(attribute, "fn", None)  # scikit-learn's available_if
        if not name.startswith("_") and method and method.__module__.startswith("argmaxf"):
            yield name, _described_at(cls, name, method)


def _described_at(cls, name, method):
    """The first definition of a method with these parameters: an override need not repeat them."""
    for base in reversed(cls.__mro__):
        first = vars(base).get(name)
        if inspect.isfunction(first) and first.__module__.startswith("argmaxf"):
            same = (
                inspect.signature(first).parameters.keys()
                == inspect.signature(method).parameters.keys()
            )
            return first if same else method
    return method


def classes():
    return ((name, thing) for name, thing in members() if inspect.isclass(thing))


def named(pairs):
    return [pytest.param(thing, id=name) for name, thing in pairs]


def described(doc, *sections):
    """Parameters by name; `y_true, y_pred : array-like` describes two."""
    return {
        name.strip().lstrip("*"): parameter
        for section in sections
        for parameter in doc[section]
        for name in parameter.name.split(",")
    }


def faults(signature, found):
    """What is missing or wrong about a description, in words."""
    wanted = {
        name: parameter
        for name, parameter in signature.parameters.items()
        if name not in ("self", "cls") and not name.startswith("_")
    }
    for name, parameter in wanted.items():
        if name not in found:
            yield f"{name} is not described"
            continue
        kind, text = found[name].type, " ".join(found[name].desc)
        if not A_TYPE.match(kind):
            yield f"{name} has no type, but {kind!r}"
        if not text.strip().endswith((".", ":")):
            yield f"{name} is not described by a sentence: {text!r}"
        may_be_left_out = parameter.default is not parameter.empty
        if may_be_left_out and not re.search(r"default=|optional", kind):
            yield f"{name} may be left out, which its type does not say: {kind!r}"
    for name in found.keys() - wanted.keys():
        yield f"{name} is described but is no parameter"


def is_record(cls):
    """Whether what a class is made from is what it holds: described once, as attributes."""
    holds = dataclasses.is_dataclass(cls) or hasattr(cls, "_fields")
    return holds or cls.__name__.endswith("Display")


@functools.cache
def is_error(cls):
    return issubclass(cls, Exception)


@pytest.mark.parametrize("function", named(functions()))
def test_every_parameter_of_a_function_is_described(function):
    doc = FunctionDoc(function)
    assert doc["Summary"] or doc["Extended Summary"], "no summary"
    assert list(faults(inspect.signature(function), described(doc, "Parameters"))) == []


@pytest.mark.parametrize("cls", named((n, c) for n, c in classes() if not is_error(c)))
def test_every_parameter_of_a_class_is_described(cls):
    doc = ClassDoc(cls)
    assert doc["Summary"], "no summary"
    found = described(doc, "Parameters")
    if is_record(cls):  # its fields, some of them described where they are inherited from
        records = [base for base in reversed(cls.__mro__) if base.__module__.startswith("argmaxf")]
        found = {
            n: p
            for c in records
            for n, p in described(ClassDoc(c), "Attributes", "Parameters").items()
        }
        found = {n: p for n, p in found.items() if n in inspect.signature(cls).parameters}
    complaints = list(faults(inspect.signature(cls), found))
    if is_record(cls):
        complaints = [c for c in complaints if "left out" not in c]
    assert complaints == []


@pytest.mark.parametrize("thing", named((n, t) for n, t in members() if callable(t)))
def test_every_public_name_has_an_example(thing):
    """In its docstring, which the reference shows and `tests/test_docs.py` runs."""
    doc = ClassDoc(thing) if inspect.isclass(thing) else FunctionDoc(thing)
    assert ">>>" in "".join(doc["Examples"])
