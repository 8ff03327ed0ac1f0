"""Records its import in a file beside it, and sets a variable."""

import os
from pathlib import Path

Path(__file__).with_name(f"{os.getpid()}.imported").touch()
os.environ["SET"] = "once"
