"""RPCOptions: communication of a session with its servers."""

from __future__ import annotations

from estimator_bridge.compat.config.tables.build import dropped
from estimator_bridge.compat.rules import RuleTable

_SERVER = "tf.distribute.Server still takes a ConfigProto, so the option works for a server that is started by hand; strategies have no name for it"

RPC_OPTIONS = RuleTable(
    "rpc_options",
    "RPCOptions",
    (
        dropped("use_rpc_for_inprocess_master", "It sent a session's calls to itself through the network, for tests; there is no master."),
        dropped("compression_algorithm", f"How messages are compressed: {_SERVER}. Results are equal."),
        dropped("compression_level", f"How hard messages are compressed: {_SERVER}. Results are equal."),
        dropped("cache_rpc_response", f"Answers kept for calls that are sent twice: {_SERVER}."),
        dropped("disable_session_connection_sharing", "Connections of one session kept from another; there are no sessions."),
        dropped("num_channels_per_target", f"Connections to each task: {_SERVER}."),
    ),
)  # fmt: skip
