"""scikit-learn estimators for both approaches, one short file each."""
