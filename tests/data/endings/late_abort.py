"""Ends with a thread that aborts during Python's last part, when this script has written everything but its last line."""

import ctypes
import time


class Late:
    """An object that Python deletes last."""

    def __del__(self, libc=ctypes.CDLL(None), wait=time.sleep, number=ctypes.c_ulong, reference=ctypes.byref):
        libc.pthread_create(reference(number()), None, libc.abort, None)
        wait(0.5)
        print("written", flush=True)


late = Late()
