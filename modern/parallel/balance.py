"""Balance of bytes over devices: runs of neighbours if they balance, since few tensors cross between runs; else largest first."""

from __future__ import annotations

from collections.abc import Sequence

_UNEVEN = 1.2
"""Largest share of a device that counts as balanced, as a multiple of an even share: 60 % of two devices."""


def balanced(sizes: Sequence[int], loads: Sequence[int]) -> list[int]:
    """Chooses a device for each of some sizes.

    Args:
        sizes: Bytes, in an order in which neighbours exchange data.
        loads: Bytes that each device has already.

    Returns:
        The number of a device for each size. Devices have runs of neighbours, unless one of them would then have more than 1.2 of an
        even share and the largest sizes first balance better.

    Example:
        >>> balanced([10, 20, 15, 15], [0, 0])
        [0, 0, 1, 1]
        >>> balanced([30, 40, 30], [0, 0])
        [1, 0, 1]
    """
    runs = _in_runs(sizes, loads)
    largest = max(_loaded(sizes, loads, runs))
    if largest * len(loads) <= _UNEVEN * (sum(sizes) + sum(loads)):
        return runs
    greedy = _largest_first(sizes, loads)
    return greedy if max(_loaded(sizes, loads, greedy)) < largest else runs


def _loaded(sizes: Sequence[int], loads: Sequence[int], devices: Sequence[int]) -> list[int]:
    found = list(loads)
    for size, device in zip(sizes, devices, strict=True):
        found[device] += size
    return found


def _in_runs(sizes: Sequence[int], loads: Sequence[int]) -> list[int]:
    """Returns the runs whose largest device is smallest."""
    low, high = max(loads), max(loads) + sum(sizes)
    while low < high:
        middle = (low + high) // 2
        if _fill(sizes, loads, middle) is None:
            low = middle + 1
        else:
            high = middle
    found = _fill(sizes, loads, low)
    assert found is not None  # every device takes all sizes at the highest limit
    return found


def _fill(sizes: Sequence[int], loads: Sequence[int], limit: int) -> list[int] | None:
    """Fills one device after the other up to a limit; returns None if that does not suffice."""
    devices, device, load = list[int](), 0, loads[0]
    for size in sizes:
        while load + size > limit:
            device += 1
            if device == len(loads):
                return None
            load = loads[device]
        load += size
        devices.append(device)
    return devices


def _largest_first(sizes: Sequence[int], loads: Sequence[int]) -> list[int]:
    devices, found = [0] * len(sizes), list(loads)
    for index in sorted(range(len(sizes)), key=lambda index: -sizes[index]):
        devices[index] = found.index(min(found))
        found[devices[index]] += sizes[index]
    return devices
