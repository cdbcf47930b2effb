"""Life after the decision: predicted F without labels, and which rows to label."""
