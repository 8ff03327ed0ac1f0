"""Record what tests/data/python2/program.py prints under the real Python 2.7: `python2.7 make_python2.py`."""

from __future__ import print_function

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(os.path.dirname(HERE), "data", "python2", "program.py")

if __name__ == "__main__":
    assert sys.version_info[:2] == (2, 7), sys.version
    printed = subprocess.check_output([sys.executable, PROGRAM])
    with open(os.path.join(HERE, "python2.txt"), "wb") as file:
        file.write(printed)
