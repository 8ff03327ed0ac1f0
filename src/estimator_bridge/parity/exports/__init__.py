"""Two SavedModels on the same requests."""
