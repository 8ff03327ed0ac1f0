"""Ends before its thread."""

import threading, time
threading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()
print('early')
