"""Which tests run where: everywhere, on the newest TensorFlow alone, or in ``.ci/full`` alone.

README's test command must take less than nine minutes on two cores. What it leaves out is marked ``slow``; ``.ci/full`` runs
every test on both TensorFlows.
"""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

HERE = Path(__file__).parent

ONCE = (  # files and folders that do not depend on TensorFlow's version
    # The launcher, with stand-ins for its tasks: no TensorFlow. Real tasks are in test_faults, test_launch and schedulers.
    "launcher/audit/test_audit.py",
    "launcher/audit/test_rules.py",
    "launcher/monitors",
    "launcher/processes",
    *(f"launcher/test_{subject}.py" for subject in ("display", "machines", "server_status", "supervisor")),
    "launcher/schedulers",
    # Command lines and source text that is not run.
    *(f"cli/test_{verb}.py" for verb in ("check", "closed_streams", "inspect", "main", "quiet")),
    "cli/convert",
    "compat/source",
    # Files on disk, whose formats no TensorFlow changes, and configs, which are read without TensorFlow.
    "compat/checkpoint/names",
    "compat/checkpoint/test_slot_tables.py",
    "compat/checkpoint/writing",
    "compat/checkpoint/test_hostile.py",
    "compat/checkpoint/test_memory.py",
    "compat/config/test_documentation.py",
    "compat/config/test_hostile_input.py",
    "compat/config/test_nothing_silent.py",
    # Python scripts without TensorFlow, under the runner.
    "script/test_run.py",
    # Verdicts of comparisons and their reports.
    "parity/report",
    "parity/test_equivalence.py",
    "parity/test_judge.py",
    # Whole examples: test_golden.py compares fewer steps with TensorFlow 1.15.5 on every TensorFlow.
    "integration/test_examples.py",
    # Wheels, sdists, installations and pages.
    "packaging",
    # Tests of source text.
    "style",
)

SAMPLED = (  # files whose parametrized tests are so many, and so long, that only each tenth case runs outside of .ci/full
    "cli/test_run.py",
    "compat/checkpoint/conversion/test_training.py",
    "compat/keras_files/test_keras_files.py",
    "integration/test_golden.py",
    "launcher/audit/test_faults.py",
    "launcher/processes/test_guard.py",
    "legacy/test_input_results.py",
    "legacy/upstream_contrib/operations/test_recorded.py",
    "modern/canned",
    "modern/config/test_clusters.py",
    "modern/distribution",
    "modern/evaluation/test_evaluate.py",
    "modern/graph",
    "modern/keras",
    "modern/step",
    "modern/test_canned_estimators.py",
    "modern/test_engine.py",
    "modern/test_exports.py",
    "modern/test_kmeans.py",
    "modern/training/test_train.py",
    "packaging/test_shadowing.py",
)

SLOW = (  # tests of clusters, of whole jobs and of installations whose subject a shorter test beside them touches, too
    "cli/test_closed_streams.py::test_an_endless_script_ends_as_under_python",
    "cli/test_plan.py::test_a_pattern_that_matches_nothing_ends_a_run_before_it_trains",
    "cli/test_plan.py::test_a_plan_is_shown_without_training",
    "cli/test_quiet.py::test_a_comparison_prints_its_report_and_nothing_beside_it",
    "cli/test_quiet.py::test_the_script_s_own_verbosity_shows_estimators_lines",
    "cli/test_quiet.py::test_verbose_shows_what_tensorflow_says",
    "cli/test_run.py::test_a_module_that_is_not_there",
    "cli/test_run.py::test_a_script_that_wants_tensorflow_1_reads_its_version",
    "cli/test_run.py::test_a_seed_reaches_all_random_numbers_on_both_paths",
    "cli/test_run.py::test_an_error_in_a_notebook_names_cell_and_line",
    "cli/test_run.py::test_dropped_names_on_the_modern_path",
    "cli/test_run.py::test_the_flag_decides_the_version",
    "compat/checkpoint/conversion/test_training.py::test_the_page_is_in_step",
    "compat/checkpoint/test_memory.py::test_many_names_take_little_memory",
    "compat/config/test_decisions.py::test_every_row_is_constructed_or_refused",
    "compat/config/test_nothing_silent.py::test_apply_and_fit_account_for_every_setting",
    "compat/config/test_nothing_silent.py::test_what_would_compute_something_else_is_refused",
    "compat/config/test_proto.py::test_our_descriptors_first",
    "compat/keras_files/test_keras_files.py::test_the_command_in_processes_of_its_own",
    *(
        f"compat/source/fixers/test_conversion.py::test_it_runs_where_neither_package_is_installed[{name}]"
        for name in (
            "branches",
            "canned",
            "canned_numbers",
            "clipped",
            "columns",
            "contrib_layers",
            "from_keras",
            "hooks",
            "iterated",
            "keras_layers",
            "named_classes",
            "recurrent",
            "two_calls",
        )
    ),
    "compat/source/fixers/test_proof.py",
    "compat/source/test_surface.py::test_in_step_with_the_installed_tensorflow",
    "integration/test_examples.py::test_the_scripts_own_shuffle_is_drawn_alike_in_a_free_run",
    "integration/test_examples.py::test_two_replicas_share_each_batch",
    "integration/test_examples.py::test_wide_and_deep_trains_alike_to_the_last_bit",
    "launcher/audit/test_faults.py::test_without_the_audit_the_fault_goes_unnoticed",
    "launcher/monitors/test_heartbeats.py::test_a_machine_that_is_killed_ends_those_that_train_in_step_with_it",
    "launcher/monitors/test_restarts.py::test_a_task_that_holds_up_the_others_is_named_and_restarted",
    "launcher/schedulers/test_slurm.py::test_its_tasks_train",
    "launcher/test_faults.py::test_each_killed_task_comes_back_and_sigterm_saves",
    "launcher/test_faults.py::test_workers_in_step_on_two_machines",
    "launcher/test_machines.py::test_a_parameter_server_ends_when_no_chief_or_worker_has_answered_for_long",
    "legacy/distribution/test_routes.py::test_an_evaluator_beside_workers_that_reduce_together",
    "legacy/distribution/test_routes.py::test_datasets_that_differ_are_not_taken_for_parts",
    "legacy/distribution/test_routes.py::test_sparse_gradients_of_other_rows_in_each_step",
    "legacy/distribution/test_routes.py::test_synchronous_replicas_are_mirrored_ones",
    "legacy/distribution/test_routes.py::test_workers_share_the_input",
    "legacy/distribution/test_sync_replicas.py::test_a_killed_replica_gives_as_many_gradients_to_an_update_as_before",
    "legacy/distribution/test_sync_replicas.py::test_backup_replicas",
    "legacy/distribution/test_sync_replicas.py::test_gradients_of_before_do_not_outlive_the_chief",
    "legacy/distribution/test_sync_replicas.py::test_tokens_that_the_script_asks_for",
    "legacy/removed_names/test_old_libraries.py::test_a_change_of_a_column_changes_its_frame",
    "legacy/removed_names/test_old_libraries.py::test_a_change_of_a_column_that_its_frame_has_replaced_is_refused",
    "legacy/removed_names/test_old_libraries.py::test_an_assignment_without_effect_is_an_error",
    "legacy/restored/test_estimators.py::test_mirrored_strategy_trains_on_two_replicas",
    "legacy/test_installation.py::test_a_failed_import_of_the_estimator_before_the_call_does_no_harm",
    "legacy/test_installation.py::test_a_refused_call_may_be_repeated",
    "legacy/test_installation.py::test_an_alias_whose_first_use_failed_is_mended",
    "legacy/test_installation.py::test_names_are_back_in_every_namespace_and_a_second_call_changes_nothing",
    "legacy/test_installation.py::test_tensorflow_and_keras_3_imported_but_not_used_through_tensorflow",
    "legacy/test_installation.py::test_threads_may_install_and_use_aliases_at_once",
    "modern/callbacks/test_from_hooks.py::test_an_experiment_evaluates_new_checkpoints_while_it_trains",
    "modern/callbacks/test_graph_session.py::test_hooks_see_what_they_saw_with_tensorflow_1",
    "modern/canned/test_models.py::test_predictions_and_metrics_equal_the_estimators[recurrent]",
    "modern/canned/test_replicas.py::test_replicas_that_share_a_batch[losses_and_gradients_add_up]",
    "modern/canned/test_slots.py::test_training_continues_as_the_estimators[2: recurrent]",
    "modern/config/test_clusters.py::test_asynchronous_parameter_servers_with_their_partitioner",
    "modern/config/test_clusters.py::test_every_row_that_becomes_synchronous_workers_adds_their_values_up",
    "modern/config/test_clusters.py::test_synchronous_workers_and_an_evaluator",
    "modern/config/test_early_stopping.py::test_callbacks_stop_at_the_step_at_which_the_hooks_do",
    "modern/distribution/test_multi_worker.py::test_preempted_killed_and_started_again_in_other_numbers",
    "modern/distribution/test_parameter_server_audit.py::test_a_sound_training",
    "modern/distribution/test_parameter_server_audit.py::test_it_ends_while_it_trains_and_says_why",
    "modern/distribution/test_parameter_server_audit.py::test_without_the_audit_the_faults_go_unnoticed",
    "modern/distribution/test_parameter_servers.py::test_a_hook_of_the_script_sees_each_step_of_the_chief",
    "modern/distribution/test_parameter_servers.py::test_a_lost_parameter_server_ends_the_chief_in_seconds_with_the_reason",
    "modern/distribution/test_parameter_servers.py::test_each_task_runs_its_own_input_fn_with_its_own_identity",
    "modern/distribution/test_parameter_servers.py::test_the_chief_goes_on_from_the_last_checkpoint_and_every_task_ends",
    "modern/distribution/test_parameter_servers.py::test_the_evaluator_evaluates_the_last_checkpoint",
    "modern/distribution/test_parameter_servers.py::test_the_others_go_on_without_a_worker_and_take_it_back",
    "modern/distribution/test_parameter_servers.py::test_the_steps_of_all_trainers_add_up",
    "modern/distribution/test_strategies.py::test_two_devices[split_batches_train_as_one_device]",
    "modern/distribution/test_strategies.py::test_two_devices[whole_batches_train_as_the_legacy_mirrored_strategy]",
    "modern/distribution/test_tpu.py::test_host_calls_write_what_they_write_on_cpu",
    "modern/evaluation/test_evaluate.py::test_evaluation_writes_the_same_events",
    "modern/graph/test_reference_variables.py::test_optimizers_of_scripts_train_as_with_tensorflow_1",
    "modern/graph/test_savers.py::test_a_scaffold_prepares_the_session_as_it_is_asked_to",
    "modern/keras/test_from_estimator.py::test_a_batch_is_split_over_replicas",
    "modern/keras/test_from_estimator.py::test_callbacks_of_keras",
    "modern/keras/test_from_estimator.py::test_evaluation_sees_what_was_trained_since",
    "modern/keras/test_from_estimator.py::test_many_steps_at_once_change_nothing",
    "modern/keras/test_from_estimator.py::test_two_optimizers_sparse_strings_a_warm_start_and_a_vocabulary_file",
    "modern/keras/test_model_to_estimator.py::test_an_export_serves_what_the_estimator_predicts",
    "modern/parallel/test_accumulation.py::test_a_feature_that_is_the_same_for_all_rows_is_refused",
    "modern/parallel/test_accumulation.py::test_a_second_loss_after_the_first_update_is_that_of_the_whole_batch",
    "modern/parallel/test_accumulation.py::test_a_smaller_last_batch_is_whole_too",
    "modern/parallel/test_accumulation.py::test_dropout_does_not_look_like_dependent_rows",
    "modern/parallel/test_accumulation.py::test_metrics_and_averages_of_a_step_see_all_rows_once",
    "modern/parallel/test_accumulation.py::test_replicas_compute_their_pieces_in_micro_batches",
    "modern/parallel/test_accumulation.py::test_rows_of_a_sparse_tensor_are_divided_and_each_word_is_looked_up_once",
    "modern/parallel/test_accumulation.py::test_rows_that_depend_on_each_other_are_refused_at_the_first_batch[forgotten_batch_norm]",
    "modern/parallel/test_accumulation.py::test_rows_that_depend_on_each_other_are_refused_at_the_first_batch[in_batch_negatives]",
    "modern/parallel/test_accumulation.py::test_summaries_show_the_whole_loss_and_the_last_micro_batch",
    "modern/parallel/test_accumulation.py::test_wide_and_deep_trains_with_both_of_its_optimizers",
    "modern/parallel/test_example.py::test_the_first_losses_are_those_of_tensorflow_1_on_whole_batches",
    "modern/step/test_checkpoints.py::test_a_killed_training_leaves_a_folder_to_go_on_from",
    "modern/step/test_transplant_surface.py::test_both_paths_are_equal_bit_for_bit[recurrent networks]",
    "modern/step/test_transplant_surface.py::test_control_flow_that_is_to_be_as_tensorflow_1_built_it",
    "modern/step/test_xla.py::test_twenty_steps_are_equal_but_for_rounding",
    "modern/test_canned_estimators.py::test_every_canned_estimator[v2.experimental-RNNClassifier]",
    "modern/test_canned_estimators.py::test_every_head[contrib-MultiLabelHead]",
    "modern/test_exports.py::test_folders_curves_and_state_are_those_of_the_legacy_path",
    "modern/test_exports.py::test_old_exports_are_deleted_and_the_best_are_kept",
    "modern/training/parameter_servers/test_refusals.py::test_the_learning_rate_is_each_trainers_own_and_in_no_variable",
    "modern/training/parameter_servers/test_sharded_state.py::test_an_export_has_several_data_files_and_answers_as_that_of_the_legacy_path",
    "modern/training/parameter_servers/test_sharded_state.py::test_another_number_of_parameter_servers_and_slices_goes_on",
    "modern/training/parameter_servers/test_sharded_state.py::test_two_parameter_servers_hold_what_the_chief_never_does",
    "modern/training/test_mixed_precision.py::test_a_script_that_scales_its_loss_keeps_that_and_is_refused_with_the_flag",
    "modern/training/test_mixed_precision.py::test_twenty_steps_are_near_those_in_float32",
    "modern/training/test_train.py::test_a_listener_may_stop_the_training",
    "modern/training/test_train.py::test_event_files_have_the_same_tags_steps_and_values",
    "packaging/test_installs.py::test_a_regular_install_from_a_checkout",
    "packaging/test_installs.py::test_an_sdist_built_beside_an_editable_install_holds_no_links",
    "packaging/test_installs.py::test_an_sdist_installs",
    "packaging/test_shadowing.py::test_in_a_module_under_run",
    "packaging/test_shadowing.py::test_in_a_script_under_run_from_its_own_folder",
    "parity/clusters/test_launched.py::test_a_task_that_fails_ends_the_comparison_with_its_own_error",
    "parity/recording/test_randomness.py::test_seeds_come_from_the_place_in_the_model",
    "parity/test_compare.py::test_a_free_run_draws_the_same_shuffle_and_dropout",
    "parity/test_compare.py::test_a_job_with_dropout_and_batch_norm_is_equal",
    "parity/test_compare.py::test_a_side_ends_when_the_comparison_is_killed",
    "parity/test_compare.py::test_ctrl_c_ends_the_recording_and_the_other_side_follows",
    "parity/test_compare.py::test_ctrl_c_ends_the_recording_for_a_rewrite_too",
    "parity/test_compare.py::test_dropout_on_two_replicas_is_not_comparable",
    "parity/test_compare.py::test_replicas_of_the_script_get_their_own_batches_on_both_sides[0.5-not comparable]",
    "parity/test_compare.py::test_the_first_steps_of_a_loop_of_trainings_are_compared",
    "parity/test_compare.py::test_the_scripts_model_dir_is_read_and_not_written",
    "parity/test_compare.py::test_two_replicas_without_dropout_are_equal_up_to_batch_norm",
    "parity/test_planted_faults.py::test_a_learning_rate",
    "parity/test_planted_faults.py::test_a_regularizer",
    "parity/test_planted_faults.py::test_a_step_that_is_skipped",
    "parity/test_planted_faults.py::test_an_initial_value",
    "parity/test_planted_faults.py::test_epsilon",
    "parity/test_planted_faults.py::test_momentum",
    "parity/test_planted_faults.py::test_the_sign_of_the_gradient",
)


FIRST = (  # the longest files start first, so that no process waits for the other at the end
    "parity/rewrite/test_forms.py",
    "parity/rewrite/test_compare_rewrite.py",
    "compat/source/fixers/test_proof.py",
    "parity/test_compare.py",
    "integration",
    "parity/test_planted_faults.py",
    "legacy/restored/test_estimators.py",
    "modern/graph/test_graph_files.py",
    "modern/distribution",
    "packaging",
    "modern/canned/test_replicas.py",
    "legacy/distribution",
    "launcher",
)


def mark(items: Iterable[pytest.Item]) -> None:
    """Marks tests ``once`` and ``slow`` by the tables above; a file can also mark single tests itself."""
    oldest = importlib.metadata.version("tensorflow").startswith("2.15.")
    cases: Counter[str] = Counter()
    for item in items:
        if _listed(item, ONCE):
            item.add_marker("once")
        test, _, case = item.nodeid.partition("[")
        skipped = bool(case) and _listed(item, SAMPLED) and cases[test] % 10 != int(oldest)  # each TensorFlow has its tenth
        cases[test] += 1
        if skipped or _listed(item, SLOW):
            item.add_marker("slow")


def order(items: list[pytest.Item]) -> None:
    """Puts the longest files first, for ``--dist loadfile`` without its order by the number of tests."""
    items.sort(key=lambda item: next((place for place, row in enumerate(FIRST) if _listed(item, (row,))), len(FIRST)))


def _listed(item: pytest.Item, table: tuple[str, ...]) -> bool:
    name = item.nodeid.removeprefix("tests/")
    return any(name == row or name.startswith((f"{row}/", f"{row}::", f"{row}[")) for row in table)
