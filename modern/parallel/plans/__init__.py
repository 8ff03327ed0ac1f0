"""Plans of parallel trainings: what they say, how they are written, and what of them a TensorFlow 1 configuration says."""
