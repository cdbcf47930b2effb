"""The experiments of "Optimizing F-Measures: A Tale of Two Approaches" (ICML 2012), run again.

One module for each table or figure, `run` for the runner, `python -m reproduction` for the command.
"""
