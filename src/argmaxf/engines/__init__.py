"""Data frames of any engine, summarized by that engine: Narwhals expressions and nothing else."""
