"""Model functions: what they consist of, and the classes of Keras that they become."""
