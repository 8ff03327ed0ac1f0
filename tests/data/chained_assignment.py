"""Fills gaps in a column by a call that changes nothing in pandas 3."""

import pandas as pd

frame = pd.DataFrame({"a": [1.0, None]})
frame["a"].fillna(0.0, inplace=True)
print(frame["a"].tolist())
