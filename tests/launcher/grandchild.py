"""Leaves its process group, ignores SIGTERM and stays: grandchild.py FOLDER, where it leaves its pid."""

import os
import pathlib
import signal
import sys
import time

if os.fork():
    os._exit(0)
os.setsid()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1], f"{os.getpid()}.pid").touch()
time.sleep(600)
