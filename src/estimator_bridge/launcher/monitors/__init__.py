"""Monitors of a running cluster: readiness, stalls, restarts, heartbeats, failures on other machines."""
