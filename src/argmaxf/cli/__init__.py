"""The argmaxf command: its entry point, and how every failure is reported.

Little is imported here, so that Ctrl-C is answered from the first moment on. A module of a command
has its options, and imports what it needs when it runs, so that help comes at once.
"""

import sys


def main() -> None:
    """Run the command; bad input is one clear line and exit code 2, never a traceback."""
    try:
        from argmaxf.cli.app import run, without_panics
    except ModuleNotFoundError as error:
        sys.exit(f"argmaxf: the command needs {error.name}; run pip install 'argmaxf[cli]'")
    except KeyboardInterrupt:  # while it still loads
        sys.exit(130)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal may know fewer letters than we print
            stream.reconfigure(errors="replace")
    sys.exit(without_panics(run))
