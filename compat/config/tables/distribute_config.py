"""DistributeConfig: strategies, and the cluster that a client outside it trains on."""

from __future__ import annotations

from estimator_bridge.compat.config.tables.build import approximate, manual
from estimator_bridge.compat.rules import RuleTable

DISTRIBUTE_CONFIG = RuleTable(
    "distribute_config",
    "DistributeConfig",
    (
        manual("train_distribute", "the table of strategies", "See the table of strategies, with RunConfig(train_distribute=...)."),
        manual("eval_distribute", "the table of strategies", "See the table of strategies, with RunConfig(eval_distribute=...)."),
        approximate(
            "remote_cluster", "strategy.remote_cluster", "tf.config.experimental_connect_to_cluster", {"worker": ("localhost:2222",)},
            note="Estimator ran the coordinator's loop on the cluster's servers; here this process connects to them and drives them, "
            "and the strategy names their devices.",
        ),
    ),
)  # fmt: skip
