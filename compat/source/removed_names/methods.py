"""Methods that classes lost: found only by their name, so reports say "if", and replaced only on objects of these classes."""

from collections.abc import Mapping
from typing import NamedTuple

from estimator_bridge.compat.source.removed_names import RESTORED


class Method(NamedTuple):
    """A method that some class lost.

    Attributes:
        owners: Dotted names of the classes that had the method.
        target: Function that takes the object and the method's arguments, as in ``Removed``.
        today: Code to write today.
    """

    owners: tuple[str, ...]
    target: str
    today: str


_ARRAYS = ("numpy.ndarray", "numpy.generic")

_ASSERTIONS = {
    "assertAlmostEquals": "assertAlmostEqual",
    "assertEquals": "assertEqual",
    "assertItemsEqual": "assertCountEqual",
    "assertNotAlmostEquals": "assertNotAlmostEqual",
    "assertNotEquals": "assertNotEqual",
    "assertNotRegexpMatches": "assertNotRegex",
    "assertRaisesRegexp": "assertRaisesRegex",
    "assertRegexpMatches": "assertRegex",
    "assert_": "assertTrue",
    "failIf": "assertFalse",
    "failIfAlmostEqual": "assertNotAlmostEqual",
    "failIfEqual": "assertNotEqual",
    "failUnless": "assertTrue",
    "failUnlessAlmostEqual": "assertAlmostEqual",
    "failUnlessEqual": "assertEqual",
    "failUnlessRaises": "assertRaises",
}

METHODS: Mapping[str, Method] = {
    "assertDictContainsSubset": Method(
        ("unittest.TestCase",), f"{RESTORED}methods.assert_dict_contains_subset", "assertLessEqual(a.items(), b.items())"
    ),
    "getchildren": Method(("xml.etree.ElementTree.Element",), "builtins.list", "list(element)"),
    "isAlive": Method(("threading.Thread",), "threading.Thread.is_alive", "is_alive()"),
    "itemset": Method(_ARRAYS, f"{RESTORED}methods.itemset", "a[index] = value"),
    "newbyteorder": Method(_ARRAYS, f"{RESTORED}methods.newbyteorder", "a.view(a.dtype.newbyteorder(order))"),
    "ptp": Method(_ARRAYS, "numpy.ptp", "numpy.ptp(a)"),
    "tostring": Method((*_ARRAYS, "array.array"), f"{RESTORED}methods.tobytes", "tobytes()"),
    **{old: Method(("unittest.TestCase",), f"unittest.TestCase.{new}", f"{new}()") for old, new in _ASSERTIONS.items()},
}
"""By name."""
