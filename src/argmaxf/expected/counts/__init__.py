"""Measures that are no ratio of the family: expectations from the distributions of counts."""
