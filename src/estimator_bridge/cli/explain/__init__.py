"""Explanations of messages."""
