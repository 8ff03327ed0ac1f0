"""Ends with an exception and a hook for it."""

import sys
sys.excepthook = lambda *error: print('hooked', error[1])
raise ValueError('x')
