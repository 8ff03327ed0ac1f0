"""What happens between training steps: the counterparts of TF1's session hooks, at the steps where TF1 ran them."""
