"""``python -m estimator_bridge``."""

import sys

from estimator_bridge.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
