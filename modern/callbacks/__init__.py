"""Callbacks between training steps: counterparts of TF1's session hooks, called at the steps at which TF1 calls those."""
