"""The classifier that accuracy.py trains, in numpy: its data, its first weights, and the same training by hand in float64."""

import numpy as np

GLOBAL_BATCH, RATE, MOMENTUM = 12, 0.02, 0.9

_random = np.random.RandomState(0)
X = _random.normal(size=(2400, 8)).astype(np.float32)
Y = (X.sum(axis=1) + 0.3 * _random.normal(size=len(X)) > 0).astype(np.int32)
START = {
    "hidden/kernel": (0.3 * _random.normal(size=(8, 16))).astype(np.float32),
    "hidden/bias": np.zeros(16, np.float32),
    "logits/kernel": (0.2 * _random.normal(size=(16, 2))).astype(np.float32),
    "logits/bias": np.zeros(2, np.float32),
}


def forward(weights, x):
    """Returns the hidden layer of rows, and the probabilities of both classes."""
    hidden = np.maximum(x @ weights["hidden/kernel"] + weights["hidden/bias"], 0)
    scores = np.exp(hidden @ weights["logits/kernel"] + weights["logits/bias"])
    return hidden, scores / scores.sum(axis=1, keepdims=True)


def loss(weights, x, y):
    """Returns the mean cross entropy of rows."""
    return -np.log(forward(weights, x)[1][np.arange(len(y)), y]).mean()


def by_hand(steps, replicas):
    """Trains with momentum over the global batches. Returns the first replica's loss at each step, and the last checkpoint's variables."""
    weights = {name: start.astype(np.float64) for name, start in START.items()}
    slots = {name: np.zeros_like(start) for name, start in weights.items()}
    losses = []
    for step in range(steps):
        rows = np.arange(step * GLOBAL_BATCH, (step + 1) * GLOBAL_BATCH) % len(X)
        x, y = X[rows].astype(np.float64), Y[rows]
        losses.append(loss(weights, x[: GLOBAL_BATCH // replicas], y[: GLOBAL_BATCH // replicas]))
        hidden, probabilities = forward(weights, x)
        error = (probabilities - np.eye(2)[y]) / GLOBAL_BATCH
        below = error @ weights["logits/kernel"].T * (hidden > 0)
        gradients = x.T @ below, below.sum(0), hidden.T @ error, error.sum(0)
        for name, gradient in zip(START, gradients):
            slots[name] = MOMENTUM * slots[name] + gradient
            weights[name] = weights[name] - RATE * slots[name]
    return losses, {**weights, **{f"{name}/Momentum": slot for name, slot in slots.items()}}
