"""The paper's real data sets: the public name of `argmaxf.paper.datasets`.

>>> from argmaxf.datasets import load_mulan, load_reuters
"""

from argmaxf.paper.datasets import DataNotFoundError, MultilabelData, load_mulan, load_reuters

__all__ = ["DataNotFoundError", "MultilabelData", "load_mulan", "load_reuters"]
