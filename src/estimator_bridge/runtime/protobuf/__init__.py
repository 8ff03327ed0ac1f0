"""Reader of protobuf bytes; it needs no message classes."""
