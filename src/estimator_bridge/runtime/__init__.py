"""What a running job needs on either path."""
