"""One chunk is made while the one before it is written."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor


def ahead(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The same chunks, the next of which is made in a thread: reading, checksums and NumPy leave Python's lock to others.

    Args:
        chunks: what to run ahead of.

    Yields:
        Each chunk.

    Example:
        >>> list(ahead(iter([b"a", b"b"])))
        [b'a', b'b']
    """
    with ThreadPoolExecutor(1) as pool:  # waits for a chunk that is on its way, whatever ended the loop
        pending = pool.submit(next, chunks, None)
        while (data := pending.result()) is not None:
            pending = pool.submit(next, chunks, None)
            yield data
