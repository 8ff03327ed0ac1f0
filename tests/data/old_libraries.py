"""Calls of libraries that a later release of theirs refuses or changes."""

import importlib
import io
import json

import numpy as np
import pandas as pd

frame = pd.DataFrame({"a": [1, 2]})
row = frame.append({"a": 9}, ignore_index=True)
more = frame.append(pd.DataFrame({"a": [3]}), ignore_index=True)
whole = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
whole.values[0] = [7, 8]
results = {
    "append": [more["a"].tolist(), more.index.tolist()],
    "row": [row["a"].tolist(), [str(row["a"].dtype)]],
    "series": frame["a"].append(frame["a"]).tolist(),
    "iteritems": [name for name, _ in frame.iteritems()],
    "drop": list(pd.DataFrame({"a": [1], "b": [2]}).drop("b", 1)),
    "dummies": str(pd.get_dummies(pd.Series(["x", "y"]))["x"].dtype),
    "object": str(pd.Series(["x"]).dtype),
    "read": pd.read_csv(io.StringIO("1;2\n3;4"), ";", header=None).values.tolist(),
    "squeezed": pd.read_csv(io.StringIO("a\n1\n3"), squeeze=True).tolist(),
    "whitespace": list(pd.read_csv(io.StringIO("a  b\n1  2"), delim_whitespace=True)),
    "written": whole["b"].tolist(),
    "yaml": importlib.import_module("yaml").load("rate: 0.5"),
}


ragged = np.array([[1, 2], [3]])
results["ragged"] = [str(ragged.dtype), ragged.tolist()]
results["stacked"] = [np.hstack(i * np.ones(1) for i in range(2)).tolist(), np.vstack(map(list, ["1", "2"])).tolist(), np.stack({"a": [1]}.values(), axis=1).tolist()]
several = pd.DataFrame({"a": [1.0, None], "b": [None, 4.0]})
several[["a", "b"]].fillna(0.0, inplace=True)
results["several columns"] = int(several.isnull().sum().sum())
print(json.dumps(results))
