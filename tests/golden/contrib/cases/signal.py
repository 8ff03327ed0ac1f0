"""Cases of tf.contrib.signal."""

import numpy as np
import tensorflow as tf

signal = tf.contrib.signal
WAVE = np.sin(np.arange(64) / 3).astype(np.float32)[None]


def spectrograms():
    stft = signal.stft(WAVE, 16, 8)
    scales = signal.linear_to_mel_weight_matrix(4, 9, 100.0, 10.0, 50.0)
    mel = tf.tensordot(tf.abs(stft), scales, 1)
    mel.set_shape([1, 7, 4])
    return [tf.abs(stft), scales, signal.mfccs_from_log_mel_spectrograms(tf.log(mel + 1.0))]


def back():
    window = signal.inverse_stft_window_fn(8)
    return signal.inverse_stft(signal.stft(WAVE, 16, 8), 16, 8, window_fn=window)


def frames():
    framed = signal.frame(WAVE, 16, 8, pad_end=True)
    return [framed, signal.overlap_and_add(framed, 8), signal.hamming_window(6), signal.hann_window(5, periodic=False)]
