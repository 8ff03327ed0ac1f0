"""Distribution on the legacy path: strategies, synchronous replicas, input shards, and tasks under a launcher."""
