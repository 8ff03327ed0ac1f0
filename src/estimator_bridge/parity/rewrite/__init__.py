"""The comparison of an old script with a rewrite of it in tf_keras."""
