"""Modules beside this script have the names of folders of ours; prints whose each is."""

import json
import compat
import legacy.layers
import modern
import estimator_bridge.compat
import estimator_bridge.legacy
import estimator_bridge.modern

print(json.dumps({
    "theirs": [compat.WHOSE, legacy.layers.WHOSE, modern.WHOSE],
    "ours": [
        hasattr(package, "WHOSE") or "estimator_bridge" not in package.__name__
        for package in (estimator_bridge.compat, estimator_bridge.legacy, estimator_bridge.modern)
    ],
}))
