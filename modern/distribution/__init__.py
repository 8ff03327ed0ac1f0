"""Distribution on the modern path: strategies, workers in step, parameter servers, input shards."""
