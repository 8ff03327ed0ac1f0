"""Distribution on the modern path: strategies, workers that train in step, parameter servers, input shards."""
