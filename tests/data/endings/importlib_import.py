"""Ends with an exception in what importlib imports."""

import importlib
importlib.import_module('broken')
