"""Where the items are: one protocol, and the arrays that keep it."""
