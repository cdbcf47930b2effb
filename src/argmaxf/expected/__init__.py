"""The decision-theoretic approach (DTA): predictions with the highest expected F-measure."""
