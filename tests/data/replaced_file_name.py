"""Replaces a name of a file of TensorFlow: other scripts must not see it."""

import json
from tensorflow.python.data.ops import readers
import tensorflow.python.data.ops.readers as again
from tensorflow.python.data.ops.readers import *
import sys
real = sys.modules["tensorflow.python.data.ops.readers"]
readers.marker = 5
print(json.dumps([again is readers, real.marker, TFRecordDataset is readers.TFRecordDataset is not real.TFRecordDatasetV2]))
