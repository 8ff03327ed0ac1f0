"""Fills gaps in some rows' column by an assignment that changes nothing in any pandas."""

import pandas as pd

frame = pd.DataFrame({"a": [1.0, None]})
frame[frame["a"].isna()]["a"] = 0.0
print(frame["a"].tolist())
