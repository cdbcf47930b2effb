"""The summary of any number of probabilities: how it is laid out, and what is read from it."""
