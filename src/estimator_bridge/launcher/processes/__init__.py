"""Processes of tasks: how they are spawned or forked, and how they end with the launcher."""
