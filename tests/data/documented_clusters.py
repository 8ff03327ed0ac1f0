"""K-means as its documentation shows it: an input of one epoch that centers are chosen from before the first training can take a step."""

import numpy as np, tensorflow as tf

POINTS = np.random.RandomState(3).uniform(0, 100, [60, 2]).astype(np.float32)

def input_fn():
    return tf.train.limit_epochs(tf.convert_to_tensor(POINTS), num_epochs=1)

kmeans = tf.estimator.experimental.KMeans(num_clusters=4, use_mini_batch=False)
for _ in range(3):
    kmeans.train(input_fn)
    print(kmeans.cluster_centers().shape, kmeans.score(input_fn))
print(len(list(kmeans.predict_cluster_index(input_fn))))
