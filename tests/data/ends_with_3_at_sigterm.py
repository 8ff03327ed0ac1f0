"""Says that it is there, and ends with exit code 3 at SIGTERM."""

import signal, sys, time
signal.signal(signal.SIGTERM, lambda *signal: sys.exit(3))
print("there", flush=True)
time.sleep(50)
