"""The search over groups of items: for sketches, and for what the band cannot decide.

A source (`sources`) gives the items in groups of nearly equal probability (`groups`). The value of
every top-k set that ends between two groups is known (`integrand`, `objectives`), and bounds tell
which groups may hold a better one (`bounds`); those are asked for in finer groups (`search`), until
none is left.
"""
