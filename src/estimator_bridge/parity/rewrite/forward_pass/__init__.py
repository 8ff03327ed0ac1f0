"""The forward pass of a training step as its graph shows it: facts about its operations, and the values that they compute."""
