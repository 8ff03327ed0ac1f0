"""Parts of a running job that both paths need."""
