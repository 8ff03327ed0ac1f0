"""TF_CONFIG: reading, validation and correction."""
