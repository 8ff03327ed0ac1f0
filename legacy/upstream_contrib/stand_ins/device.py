"""``tensorflow.python.framework.device`` with TensorFlow 1's DeviceSpec."""

from __future__ import annotations

from tensorflow.python.framework import device
from tensorflow.python.framework.device_spec import DeviceSpecV1 as DeviceSpec

globals().update({name: value for name, value in vars(device).items() if not name.startswith("__") and name != "DeviceSpec"})

__all__ = ["DeviceSpec"]
