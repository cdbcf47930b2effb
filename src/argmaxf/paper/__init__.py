"""The paper, reproduced: one module per table or figure, and one runner.

>>> from argmaxf.paper import NAMES
>>> NAMES[:4]
('table1', 'table2', 'figure1', 'adaptation')
"""

from argmaxf.paper.runner import NAMES, Run, reproduce

__all__ = ["NAMES", "Run", "reproduce"]
