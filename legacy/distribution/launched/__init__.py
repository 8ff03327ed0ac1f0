"""Changes that apply only in a task that ``estimator-bridge launch`` started."""
