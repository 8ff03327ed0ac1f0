"""Audit of a running cluster: records of all tasks, and the rules that judge them."""
