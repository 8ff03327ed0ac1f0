"""Names that contrib.learn gave to modes."""

from __future__ import annotations


class ModeKeys:
    """Why a model_fn is called; ``INFER`` is what ``tf.estimator.ModeKeys.PREDICT`` became, under another value."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises ValueError for what is no mode."""
        if key not in (cls.TRAIN, cls.EVAL, cls.INFER):
            raise ValueError(f"Invalid mode {key}.")
