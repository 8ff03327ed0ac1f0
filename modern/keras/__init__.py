"""Keras models of Estimators, and Estimators of Keras models."""
