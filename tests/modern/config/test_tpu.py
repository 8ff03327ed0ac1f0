"""TPU rows without a TPU: the topology, the resolver, and input functions under MirroredStrategy."""

from __future__ import annotations

import json

from tests.forked_programs import Run, observes
from tests.modern.config.programs import tpu


@observes("tpu_config.num_cores_per_replica", "tpu_config.per_host_input_for_training", "tpu_config.tpu_job_name")
def test_input_functions_assignments_and_job_names(run: Run) -> None:
    calls, assigned, job, refused = run(tpu.all_without_a_tpu)
    assert calls == {"PER_HOST_V2": [1, 4, False], "once a core": [2, 2, 4, True]}
    assert assigned == {str(cores): [8 // cores, cores] for cores in (1, 2, 4, 8)}
    assert job == "tpu_worker"
    assert "TPUStrategy cannot be made" in refused[0]
    assert "only MirroredStrategy calls an input function once a replica" in refused[1]


def test_the_shapes_are_tpu_estimators_own(run: Run) -> None:
    from estimator_bridge.compat.config.tables.tpu_config import SHAPES

    assert run(tpu.shapes_of_tpu_estimator) == json.loads(json.dumps(SHAPES))
