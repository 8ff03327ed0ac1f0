"""Says that it is ready, and sleeps."""

import time
print("ready", flush=True)
time.sleep(60)
