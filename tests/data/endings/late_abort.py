"""Ends with a thread that aborts, or has an error in C++, during Python's last part: late_abort.py abort|terminate."""

import ctypes
import sys
import time

LATE = ctypes.CDLL(None).abort if sys.argv[1] == "abort" else ctypes.CDLL("libstdc++.so.6")._ZSt9terminatev


class Late:
    """An object that Python deletes last."""

    def __del__(self, libc=ctypes.CDLL(None), late=LATE, wait=time.sleep, number=ctypes.c_ulong, reference=ctypes.byref):
        libc.pthread_create(reference(number()), None, late, None)
        wait(0.5)
        print("written", flush=True)


late = Late()
