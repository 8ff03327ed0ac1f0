"""``tf.contrib.signal``: the core's functions, which TensorFlow 1.15 had there, too."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

__all__ = [
    "frame",
    "hamming_window",
    "hann_window",
    "inverse_stft",
    "inverse_stft_window_fn",
    "linear_to_mel_weight_matrix",
    "mfccs_from_log_mel_spectrograms",
    "overlap_and_add",
    "stft",
]

frame = tf.signal.frame
hamming_window = tf.signal.hamming_window
hann_window = tf.signal.hann_window
inverse_stft = tf.signal.inverse_stft
inverse_stft_window_fn = tf.signal.inverse_stft_window_fn
linear_to_mel_weight_matrix = tf.signal.linear_to_mel_weight_matrix
mfccs_from_log_mel_spectrograms = tf.signal.mfccs_from_log_mel_spectrograms
overlap_and_add = tf.signal.overlap_and_add
stft = tf.signal.stft
