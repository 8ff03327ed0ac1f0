"""Prints all that a script sees of itself, its arguments and its folder."""
import dataclasses, inspect, os, pickle, sys
import json as json_

import beside

@dataclasses.dataclass
class Point:
    x: int
    y: "list[int]" = dataclasses.field(default_factory=list)

def function(x):
    return x + 1

annotated: int = 1
main = sys.modules["__main__"]
print(json_.dumps({
    "name": __name__,
    "file": __file__,
    "doc": __doc__,
    "spec": __spec__ and __spec__.name,
    "package": __package__,
    "loader": __loader__.path,
    "builtins": __builtins__.__name__,
    "globals": sorted(globals()),
    "argv": sys.argv,
    "path": [entry for entry in sys.path if "site-packages" not in entry],
    "stdin": sys.stdin.read(),
    "same globals": main.__dict__ is globals(),
    "pickle": pickle.loads(pickle.dumps([Point(1, [2]), function]))[0] == Point(1, [2]),
    "pickled as": function.__module__,
    "source": inspect.getsource(function),
    "beside": beside.__file__,
    "cwd": os.getcwd(),
}))
