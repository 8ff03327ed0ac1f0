"""Nothing here is a test or an example that pytest runs: the generators need TensorFlow 1.15."""

from __future__ import annotations

collect_ignore_glob = ["make_*.py", "recording.py"]
