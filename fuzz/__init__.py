"""Random attacks on argmaxf: each kind draws its cases from seeds that are printed."""
