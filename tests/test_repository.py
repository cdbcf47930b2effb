"""What stands around the code: one version everywhere, and the commands that are named exist."""

import re
import shutil
import subprocess

import pytest
import yaml

import argmaxf
from tests import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SPEAKING_OF_MAKE = [
    *WORKFLOWS,
    *(ROOT / name for name in (".ci/run", "README.md", "CONTRIBUTING.md", "docs/releasing.md")),
]
ELSEWHERE = {"python3", "rm", "touch", "npm", "node"}  # programs that no environment has to hold


def make_targets():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][\w-]*):", text, re.MULTILINE))


def test_there_is_one_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == argmaxf.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{argmaxf.__version__}]" in changelog


@pytest.mark.parametrize("path", SPEAKING_OF_MAKE, ids=lambda path: path.name)
def test_every_make_command_that_is_named_exists(path):
    text = path.read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|run: |^ {4}|\n)make ([a-z][\w-]*)", text))
    assert named <= make_targets()


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("target", sorted(make_targets() - {"clean"}))
def test_every_command_of_make_has_a_program_in_a_fresh_clone(target, tmp_path):
    # A recipe is written out before its first line runs: what it is to make is not there yet, and a
    # line that then begins with an option is one whose failure make ignores.
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    command = ["make", "--dry-run", "--no-print-directory", "PYTHON=python3", target]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    programs = {line.split()[0] for line in shown.stdout.splitlines()}
    assert programs
    assert {p for p in programs if not p.startswith(".venv")} <= ELSEWHERE


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_well_formed_and_need_no_secret(path):
    text = path.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets." not in text
    assert all(job["steps"] for job in workflow["jobs"].values())
