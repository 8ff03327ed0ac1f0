"""Ends with the third of a chain of exceptions."""

import json

def parse(text):
    try:
        return json.loads(text)
    except ValueError as error:
        raise RuntimeError("bad flags") from error

try:
    parse("{")
except RuntimeError:
    {}["missing"]
