"""Changes a column after its frame got another one in its place."""

import pandas as pd

frame = pd.DataFrame({"a": [1.0, 2.0]})
column = frame["a"]
frame["a"] = [3.0, 4.0]
column[0] = 5.0
