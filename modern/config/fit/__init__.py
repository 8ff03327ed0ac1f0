"""The arguments of fit: what a ModernConfig sets there, callbacks included, and the evaluator beside it."""
