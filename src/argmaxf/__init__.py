"""argmaxf: the predictions with the highest F-measure, exact and fast, for any β.

The public names stand in `__init__.pyi`; each is imported when it is first asked for.
"""

__version__ = "0.1.0"

# Nothing else is imported here, so that Ctrl-C is answered by the command from its first moment on.
_LINES = __loader__.get_data(f"{__file__}i").decode().replace("(", " ").split("\nfrom ")[1:]
_HOMES = {name: home for home, _, name, *_ in map(str.split, _LINES)}
__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> object:
    """Import a public name from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home = _HOMES[name]
    if home == __name__:
        found = import_module(f"{home}.{name}")
    else:
        found = getattr(import_module(home), name)
    globals()[name] = found  # asked for once
    return found


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
