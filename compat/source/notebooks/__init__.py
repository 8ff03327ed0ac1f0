"""Jupyter notebooks as Python source: their code cells, and the lines that only IPython can run."""
