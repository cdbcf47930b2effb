"""The argmaxf command: its entry point, and how every failure is reported."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; bad input is one clear line and exit code 2, never a traceback."""
    try:
        from argmaxf.commands.app import run
    except ModuleNotFoundError as error:
        sys.exit(f"argmaxf: the command needs {error.name}; run pip install 'argmaxf[cli]'")
    except KeyboardInterrupt:  # while it still loads
        sys.exit(130)
    sys.exit(run())
