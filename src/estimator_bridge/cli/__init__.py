"""The command line: one file a command; each imports only what it needs when it runs."""
