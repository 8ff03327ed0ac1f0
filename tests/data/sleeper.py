"""Leaves a file that says that it has started, and sleeps."""

import time

open("started", "w").close()
time.sleep(600)
