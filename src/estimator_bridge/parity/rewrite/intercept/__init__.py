"""The calls of a new script: of models, gradient tapes and loops over datasets."""
