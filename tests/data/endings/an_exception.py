"""Ends with an exception."""

def train():
    raise ValueError("loss is nan")

train()
