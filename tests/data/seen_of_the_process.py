"""Prints what a program sees of its process."""

import json, os, sys
print(json.dumps([sys.argv, sys.path[0], __name__, os.getcwd(), os.environ.get("NEW"), "HOME" in os.environ, sys.stdin.read()]))
