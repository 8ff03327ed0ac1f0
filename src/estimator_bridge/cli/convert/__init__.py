"""``estimator-bridge convert``: one module for each kind of conversion."""
