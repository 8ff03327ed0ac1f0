"""Recurrent cells of TF1 and the Keras layers that compute the same from weights in another layout."""
