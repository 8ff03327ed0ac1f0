"""``estimator-bridge compare``."""
from typing import Any
def add_parser(verbs: Any) -> None: pass
