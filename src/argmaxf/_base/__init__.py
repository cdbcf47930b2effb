"""What every other package builds on: validation, array types, compiling, atomic writes."""
