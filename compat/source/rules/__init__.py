"""Rules that judge source: names of TensorFlow, removed names, successors, misuse."""
