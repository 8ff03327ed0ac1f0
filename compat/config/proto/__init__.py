"""ConfigProto without TensorFlow: its text and binary forms, read with descriptors of our own."""
