"""Writes the names of the installed TensorFlow: of its files, those in each twenty-fifth."""

import json
import sys
from pathlib import Path

from tests.compat.source import make_symbols

Path(sys.argv[1]).write_text(json.dumps(make_symbols.installed(keep=25)), encoding="utf-8")
