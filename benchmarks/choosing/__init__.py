"""The study behind the choice of a method: real imbalanced sets, four models, every method."""
