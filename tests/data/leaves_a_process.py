"""Starts a process in a session of its own, says so, and sleeps."""

import subprocess, sys, time
subprocess.Popen(["sleep", "600"], start_new_session=True)
print("here")
time.sleep(600)
