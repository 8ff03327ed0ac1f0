"""Puts a ModernConfig in force: TensorFlow's runtime, strategies, connections, arguments of fit."""
