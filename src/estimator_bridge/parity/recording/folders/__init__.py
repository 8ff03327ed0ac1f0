"""The folders of a side in place of those that its script names."""
