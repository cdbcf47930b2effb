"""The paper's real data sets: found on this machine or downloaded, and checked byte for byte."""

from argmaxf.datasets.mulan import load_mulan
from argmaxf.datasets.reuters import load_reuters
from argmaxf.datasets.storage import DataNotFoundError
from argmaxf.datasets.tables import MultilabelData

__all__ = ["DataNotFoundError", "MultilabelData", "load_mulan", "load_reuters"]
