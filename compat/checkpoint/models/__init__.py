"""Descriptions of a model: an object graph, a named graph, or what a user passes as --like."""
