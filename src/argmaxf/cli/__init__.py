"""The argmaxf command: its entry point, and how every failure is reported.

Little is imported here, so that Ctrl-C is answered from the first moment on. Each command is one
module: it parses, calls one public function and prints.
"""

import sys

READING = ("decide", "sketch", "compare")  # the commands that read files of users


def main() -> None:
    """Run the command; bad input is one clear line and exit code 2, never a traceback."""
    try:
        from argmaxf.cli.app import run
        from argmaxf.cli.panics import panics_held
    except ModuleNotFoundError as error:
        sys.exit(f"argmaxf: the command needs {error.name}; run pip install 'argmaxf[cli]'")
    except KeyboardInterrupt:  # while it still loads
        sys.exit(130)
    if not set(READING) & set(sys.argv[1:2]):
        sys.exit(run())
    with panics_held():
        code = run()
    sys.exit(code)
