"""The script on its original TensorFlow 1, as a third side: what records it, and the verdict on all three."""
