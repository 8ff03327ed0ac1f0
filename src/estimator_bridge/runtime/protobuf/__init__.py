"""A reader of protobuf bytes that needs no message classes."""
