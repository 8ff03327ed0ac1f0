"""Names of variables, slots and nodes, and how the names of two sides are paired."""
