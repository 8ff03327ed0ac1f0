"""Folders that other machines of a cluster may or may not share with this process."""

import glob
import uuid
from collections.abc import Sequence

import tensorflow as tf


def folder_of(prefix: str) -> str:
    """Returns the folder of a checkpoint's files."""
    return prefix.rpartition("/")[0] or "."


def is_shared(folder: str, devices: Sequence[str]) -> bool:
    """Returns True if the machines of all devices see what this process writes into a folder.

    A new folder is made there for a moment, since a file of the same name may be on a machine's own disk.

    Args:
        folder: Existing folder.
        devices: Names of devices.
    """
    made = tf.io.gfile.join(folder, f"estimator_bridge_{uuid.uuid4().hex}")
    try:
        tf.io.gfile.mkdir(made)
    except tf.errors.OpError:
        return False
    try:
        return all(_sees(device, made) for device in devices)
    finally:
        tf.io.gfile.rmtree(made)


def _sees(device: str, path: str) -> bool:
    with tf.device(device):
        return bool(tf.size(tf.raw_ops.MatchingFiles(pattern=glob.escape(path))).numpy() == 1)
