import subprocess
import sys

import pytest

import argmaxf
from argmaxf.cli.app import run


def test_version(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"argmaxf {argmaxf.__version__}"


def test_unknown_words_are_one_line_and_exit_code_2(capsys):
    assert run(["frobnicate"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("argmaxf: No such command")
    assert error.count("\n") == 1


def test_the_command_is_installed():
    command = [sys.executable, "-c", "from argmaxf.cli import main; main()", "--version"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output.strip() == f"argmaxf {argmaxf.__version__}"


def test_help_without_arguments(capsys):
    assert run([]) == 0
    assert "demo" in capsys.readouterr().out


@pytest.mark.parametrize("missing", ["typer"])
def test_without_the_extra_it_says_what_to_install(missing):
    code = f"import sys; sys.modules[{missing!r}] = None; from argmaxf.cli import main; main()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr.strip().startswith("argmaxf: the command needs")
    assert "pip install 'argmaxf[cli]'" in run.stderr
