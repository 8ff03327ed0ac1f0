"""TF_CONFIG: read, validated and corrected; and which strategy a cluster amounts to."""
