"""Clusters of contrib.factorization, by mini-batches or by whole batches."""

from job import STEPS, VARIANT, config, inputs, normal, report
from tensorflow.contrib import factorization

X = normal(0, 12, 3)


def clusters():
    """Means of clusters."""
    options = {"use_mini_batch": False}
    if VARIANT == "mini-batches":
        options = {"use_mini_batch": True, "mini_batch_steps_per_iteration": 2}
    found = factorization.KMeansClustering(2, initial_clusters=X[:2], config=config(), **options)
    found.train(inputs(X), max_steps=STEPS)
    report(score=found.score(inputs(X)), centers=found.cluster_centers(), nearest=list(found.predict_cluster_index(inputs(X))))


clusters()
