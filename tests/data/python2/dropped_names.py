"""Uses names that Python 3 and NumPy 2 have no longer."""
import numpy as np; hidden = filter(None, [1])
print(np.int(3), len(list(hidden)), len(list(hidden)))
