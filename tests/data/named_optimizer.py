"""A script of an Estimator, in which NAME stands for an optimizer's class."""

import tensorflow as tf

if __name__ == "__main__":
    tf.estimator.DNNClassifier([8], [], optimizer=tf.train.NAME(0.1))
