"""The tests, one folder for each package of the library; shared helpers are here."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
