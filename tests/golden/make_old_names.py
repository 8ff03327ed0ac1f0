"""Record the names that old NumPys and old Pythons had: `python make_old_names.py`, under each of them in turn.

Python 3.6 writes its library's modules and names; a Python with NumPy 1 writes NumPy's names, one file a version.
"""

from __future__ import print_function

import importlib
import inspect
import json
import os
import pkgutil
import sys
import warnings

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "old_names")
MODULES = """
    array ast asyncio base64 collections configparser fractions gettext importlib inspect itertools locale math os pkgutil platform
    plistlib random shutil string sys tarfile threading time unittest
"""


def own_names(module):
    """The public names that are a module's own: not what it imports."""
    names = set(getattr(module, "__all__", ()))
    for name, value in vars(module).items():
        home = getattr(value, "__module__", None)
        if not name.startswith("_") and not inspect.ismodule(value) and home in (module.__name__, None) and callable(value):
            names.add(name)
    return sorted(names)


def library():
    """What Python's own library has."""
    paths = [path for path in sys.path[1:] if "site-packages" not in path]
    modules = {found[1] for found in pkgutil.iter_modules(paths)} | set(sys.builtin_module_names)
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "modules": sorted(name for name in modules if not name.startswith("_")),
        "names": {name: own_names(importlib.import_module(name)) for name in MODULES.split()},
        "TestCase": sorted(name for name in dir(importlib.import_module("unittest").TestCase) if not name.startswith("_")),
    }


def numpy_names():
    """What NumPy has."""
    import numpy

    return {
        "numpy": numpy.__version__,
        "names": sorted(name for name in dir(numpy) if not name.startswith("_")),
        "methods": sorted(name for name in dir(numpy.ndarray) if not name.startswith("_")),
    }


def write(name, value):
    """One JSON file, the same bytes each time."""
    with open(os.path.join(HERE, name), "w") as file:
        file.write(json.dumps(value, indent=0, sort_keys=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.version_info[:2] == (3, 6):
        write("python.json", library())
    else:
        found = numpy_names()
        write("numpy-{}.json".format(".".join(found["numpy"].split(".")[:2])), found)
