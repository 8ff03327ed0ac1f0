"""Descriptions of a model: an object graph, a named graph, or the argument of --like."""
