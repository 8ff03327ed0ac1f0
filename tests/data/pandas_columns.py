"""Changes frames by their columns, as scripts of pandas 1 do, and prints what the frames hold then."""

import pandas as pd


def frame():
    return pd.DataFrame({"a": [1.0, None, 3.0], "b": ["x", "?", "z"], "c": [1, 2, 3]})


def show(name, made, *columns):
    print(name, str(made.values.tolist()), *(str(column.tolist()) for column in columns))


f = frame()
f["a"].fillna(0.0, inplace=True)
show("fillna", f)
f = frame()
f.a.fillna(f.a.median(), inplace=True)
show("attribute", f)
f = frame()
f["b"].replace("?", "q", inplace=True)
show("replace", f)
f = frame()
f["c"].clip(2, 3, inplace=True)
show("clip", f)
f = frame()
f["c"].where(f["c"] > 1, 0, inplace=True)
show("where", f)
f = frame()
f["c"].update(pd.Series([7, 8, 9]))
show("update", f)
f = frame()
f["c"][f["c"] > 1] = 9
show("mask", f)
f = frame()
f["c"][0] = 7
show("item", f)
f = frame()
f["c"].loc[1] = 5
show("loc", f)
f = frame()
f["b"].iloc[2] = "w"
show("iloc", f)
f = frame()
f.c.at[0] = 8
show("at", f)
f = frame()
column = f["a"]
column.fillna(5.0, inplace=True)
show("named", f, column)
f = frame()
column = f["c"].copy()
column[0] = 4
show("copy", f, column)
f = frame()
column = f["c"]
column = column * 2
column[0] = 4
show("computed", f, column)
f = frame()
f["a"].dropna(inplace=True)
show("shorter", f)
f = frame()
for key in ("a", "c"):
    f[key].fillna(f[key].median(), inplace=True)
show("loop", f)
