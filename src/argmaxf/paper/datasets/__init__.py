"""The paper's real data sets: found on this machine or downloaded, and checked byte for byte."""

from argmaxf.paper.datasets.mulan import load_mulan
from argmaxf.paper.datasets.reuters import load_reuters
from argmaxf.paper.datasets.storage import DataNotFoundError
from argmaxf.paper.datasets.tables import MultilabelData

__all__ = ["DataNotFoundError", "MultilabelData", "load_mulan", "load_reuters"]
