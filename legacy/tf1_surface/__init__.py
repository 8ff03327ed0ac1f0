"""TensorFlow 1 as scripts see it: imports, behaviour switches, old Keras modules, tutorial modules."""
