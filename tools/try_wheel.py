"""Install into an empty environment and use it: python tools/try_wheel.py dist.

First the built wheel, then what docs/install.md names: `pip install '.[cli,report]'` in this clone.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

SMOKE = """
import re
from importlib.metadata import metadata
import argmaxf
decision = argmaxf.maximize_expected_f([0.05, 0.45, 0.10, 0.30, 0.40])
assert decision.k == 3, decision
assert len(argmaxf.__all__) > 20
for name in argmaxf.__all__:
    getattr(argmaxf, name)
shown = metadata("argmaxf").get_payload()
assert "](https://github.com/argmaxf/argmaxf/blob/main/docs/" in shown
assert not re.findall(r"\\]\\((?!https:)[^)]*", shown), "the index cannot follow relative links"
print("argmaxf", argmaxf.__version__, "works from its wheel")
"""

CLONE = Path(__file__).parents[1]
ROWS = "a,b,y\n" + "".join(f"{i % 7},{i % 5},{int(i % 7 > 4)}\n" for i in range(120))


def main(folder: str) -> None:
    (wheel,) = Path(folder).glob("*.whl")
    with tempfile.TemporaryDirectory() as empty:
        venv.create(empty, with_pip=True)
        python = next(p for p in Path(empty).glob("*/python*") if p.stem == "python")
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([python, *install, str(wheel.resolve())], check=True)
        subprocess.run([python, "-c", SMOKE], check=True, cwd=empty)
        subprocess.run([python, *install, ".[cli,report]"], check=True, cwd=CLONE)
        (Path(empty) / "t.csv").write_text(ROWS)
        for command in (["--version"], ["compare", "t.csv", "--target", "y", "--report", "r.html"]):
            subprocess.run([python.parent / "argmaxf", *command], check=True, cwd=empty)


if __name__ == "__main__":
    main(sys.argv[1])
