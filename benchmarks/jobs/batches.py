"""Data and numbers of steps of the benchmarks' jobs; for Python 3.7 and later."""

import numpy as np

BATCH = 32
WARM_UP = 301  # steps that do not count; event files have the steps 101, 201, 301, ...
STEPS = {"dense": 2000, "convolutional": 700, "embedding": 1500, "rnn": 400}
VOCABULARY = 10000


def arrays():
    """Returns (features, labels) of 1,600 examples."""
    values = np.random.RandomState(7)
    features = {
        "x": values.rand(1600, 64).astype(np.float32),
        "ids": values.randint(0, VOCABULARY, size=(1600, 20)).astype(np.int64),
    }
    return features, values.randint(0, 10, size=1600).astype(np.int64)
