"""Heads of canned Estimators as Keras layers."""
