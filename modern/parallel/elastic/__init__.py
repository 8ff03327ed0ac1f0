"""Trainings whose number of workers may change: the batches of a step, and their places in the input."""
