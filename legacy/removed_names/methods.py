"""Functions for methods that arrays and test cases lost; each takes the object, then the method's arguments."""

from typing import Any


def itemset(array: Any, *args: Any) -> None:
    """Does ``array.itemset([index,] value)``; an index is an integer into the flattened array, or one for each dimension."""
    *index, value = args
    if not index:
        array[...] = value
    elif len(index) == 1 and not isinstance(index[0], tuple):
        array.flat[index[0]] = value
    else:
        array[index[0] if len(index) == 1 else tuple(index)] = value


def newbyteorder(array: Any, new_order: str = "S") -> Any:
    """Returns ``array.newbyteorder(order)``: the same bytes, read in another order."""
    return array.view(array.dtype.newbyteorder(new_order))


def tobytes(array: Any, *args: Any, **kwargs: Any) -> bytes:
    """Returns ``array.tostring()``: bytes, not text."""
    raw: bytes = array.tobytes(*args, **kwargs)
    return raw


def assert_dict_contains_subset(case: Any, subset: Any, dictionary: Any, msg: Any = None) -> None:
    """Does ``self.assertDictContainsSubset(subset, dictionary)``."""
    case.assertEqual({key: dictionary[key] for key in subset if key in dictionary}, dict(subset), msg)  # noqa: PT009 -- the case is the user's
