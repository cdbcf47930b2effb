"""Items in groups of nearly equal probability, for sketches and for what the band cannot decide."""
