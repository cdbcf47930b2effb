"""The search over groups of items: for sketches, and for what the band cannot decide.

A source gives the items in groups of nearly equal probability (`groups`). The value of every top-k
set that ends between two groups is known (`integrand`), and bounds tell which groups may hold a
better one; those are asked for in finer groups, until none is left (`search`).
"""
