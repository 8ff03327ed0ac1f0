"""Writers of checkpoints: a draft, the files beside the target, and their publication."""
