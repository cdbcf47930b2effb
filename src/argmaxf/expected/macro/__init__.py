"""Decisions that share rows: one class, or b labels, for each row, with a proof."""
