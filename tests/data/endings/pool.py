"""Ends with a pool of threads that it never shuts down."""

import builtins
from concurrent.futures import ThreadPoolExecutor

builtins.pool = ThreadPoolExecutor(2)
print(builtins.pool.submit(lambda: 3).result())
