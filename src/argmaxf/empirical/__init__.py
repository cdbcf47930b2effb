"""Empirical utility maximization (EUM): the best F-measure on labelled data."""
