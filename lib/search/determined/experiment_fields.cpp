#include "search/determined/experiment_fields.hpp"

#include <algorithm>

namespace lockstep {
namespace {

using enum ExperimentTreatment;

constexpr std::string_view by_slurm = "Options of sbatch choose resources.";
constexpr std::string_view by_folder = "Checkpoints are in the folder of the search.";
constexpr std::string_view by_buckets = "--bucket-mib sets the size of gradient buckets.";

// apps/coming_from.md repeats the fields that are moved, options or read; a test compares them.
constexpr auto fields = std::to_array<ExperimentField>({
    {"name", moved, "name"},
    {"description", moved, "description"},
    {"entrypoint", read, "--program"},
    {"max_restarts", moved, "max_restarts"},
    {"reproducibility.experiment_seed", moved, "seed"},
    {"resources.slots_per_trial", read, "ranks_per_trial"},
    {"checkpoint_storage.save_experiment_best", moved, "save_experiment_best"},
    {"checkpoint_storage.save_trial_best", moved, "save_trial_best"},
    {"checkpoint_storage.save_trial_latest", moved, "save_trial_latest"},

    {"searcher.name", moved, "searcher.name"},
    {"searcher.metric", read, "searcher.metric"},
    {"searcher.smaller_is_better", read, "searcher.smaller_is_better"},
    {"searcher.max_length", read, "searcher.max_length"},
    {"searcher.time_metric", read, "searcher.max_length"},
    {"searcher.max_time", read, "searcher.max_length"},
    {"searcher.max_trials", moved, "searcher.max_trials"},
    {"searcher.max_concurrent_trials", read, "searcher.max_concurrent_trials"},
    {"searcher.divisor", moved, "searcher.divisor"},
    {"searcher.max_rungs", moved, "searcher.max_rungs"},
    {"searcher.mode", moved, "searcher.mode"},
    {"searcher.stop_once", moved, "searcher.stop_once"},
    {"searcher.unit", refused,
     "Write the decisions of the searcher 'custom' as a program, and name it in a search file (apps/search.md)"},
    {"searcher.bracket_rungs", refused, "Remove it. 'mode' and 'max_rungs' choose the brackets"},
    {"searcher.source_trial_id", refused, "Remove it. To start from weights, add --init-from FILE to --arguments"},
    {"searcher.source_checkpoint_uuid", refused,
     "Remove it. To start from weights, add --init-from FILE to --arguments"},

    {"hyperparameters", read, "hyperparameters"},
    {"hyperparameters.global_batch_size", option, "--global-batch"},
    {"hyperparameters.learning_rate", option, "--lr"},
    {"hyperparameters.warmup_epochs", option, "--warmup"},
    {"optimizations.mixed_precision", read, "--precision"},
    {"optimizations.aggregation_frequency", read, "--accumulate"},
    {"optimizations.average_aggregated_gradients", read, "--accumulate"},
    {"min_checkpoint_period", read, "--checkpoint-every"},

    {"min_validation_period", ignored, "Trainings are tested after each epoch and at the end of each rung."},
    {"perform_initial_validation", ignored, "Trainings are tested after each epoch and at the end of each rung."},
    {"records_per_epoch", ignored, "An epoch is the training set of --data."},
    {"scheduling_unit", ignored, "Trainings can stop after each step."},
    {"checkpoint_policy", ignored, "--keep-latest, --keep-best and save_* choose the checkpoints."},
    {"data", ignored, "--data names the data set."},
    {"data_layer", ignored, "--data names the data set."},
    {"labels", ignored, "--tag marks trainings."},
    {"project", ignored, "--output names the folder of the search."},
    {"workspace", ignored, "--output names the folder of the search."},
    {"tensorboard_storage", ignored, "--tensorboard names a folder for events."},
    {"profiling", ignored, "--trace writes a trace."},
    {"debug", ignored, "--verbose prints more."},
    {"environment", ignored, "Trials have the environment of search."},
    {"bind_mounts", ignored, "Trials see the files of their node."},
    {"log_policies", ignored, "LOCKSTEP_RETRY_RULES names rules on exit codes and log lines (slurm/attempts.md)."},
    {"retention_policy", ignored, "Logs stay in the folder of the search."},
    {"integrations", ignored, "No other service is called."},
    {"security", ignored, "Trials run as the user who calls search."},
    {"internal", ignored, "It is of Determined itself."},
    {"preemption_timeout", ignored, "The grace time of Slurm's partition counts."},
    {"slurm", ignored, "Options of sbatch follow -- with --array, or are in the site profile (slurm/README.md)."},
    {"pbs", ignored, "Trials run under Slurm, or without a scheduler."},

    {"resources.max_slots", ignored, "searcher.max_concurrent_trials limits the trials at once."},
    {"resources.weight", ignored, by_slurm},
    {"resources.priority", ignored, by_slurm},
    {"resources.resource_pool", ignored, by_slurm},
    {"resources.shm_size", ignored, by_slurm},
    {"resources.devices", ignored, by_slurm},
    {"resources.agent_label", ignored, by_slurm},
    {"resources.native_parallel", ignored, by_slurm},
    {"resources.is_single_node", ignored, by_slurm},
    {"resources.slots", ignored, by_slurm},

    {"checkpoint_storage.type", ignored, by_folder},
    {"checkpoint_storage.host_path", ignored, by_folder},
    {"checkpoint_storage.storage_path", ignored, by_folder},
    {"checkpoint_storage.container_path", ignored, by_folder},
    {"checkpoint_storage.checkpoint_path", ignored, by_folder},
    {"checkpoint_storage.tensorboard_path", ignored, by_folder},
    {"checkpoint_storage.propagation", ignored, by_folder},
    {"checkpoint_storage.bucket", ignored, by_folder},
    {"checkpoint_storage.prefix", ignored, by_folder},
    {"checkpoint_storage.access_key", ignored, by_folder},
    {"checkpoint_storage.secret_key", ignored, by_folder},
    {"checkpoint_storage.endpoint_url", ignored, by_folder},
    {"checkpoint_storage.container", ignored, by_folder},
    {"checkpoint_storage.connection_string", ignored, by_folder},
    {"checkpoint_storage.account_url", ignored, by_folder},
    {"checkpoint_storage.credential", ignored, by_folder},

    {"optimizations.average_training_metrics", ignored, "Metrics are always of all ranks."},
    {"optimizations.gradient_compression", ignored, "--wire bf16 sends gradients in 16 bits."},
    {"optimizations.auto_tune_tensor_fusion", ignored, by_buckets},
    {"optimizations.tensor_fusion_threshold", ignored, by_buckets},
    {"optimizations.tensor_fusion_cycle_time", ignored, by_buckets},
    {"optimizations.grad_updates_size_file", ignored, by_buckets},
});

}  // namespace

std::span<const ExperimentField> experiment_fields() { return fields; }

const ExperimentField* find_experiment_field(std::string_view there) {
  const auto found = std::ranges::find(fields, there, &ExperimentField::there);
  return found == fields.end() ? nullptr : &*found;
}

bool is_experiment_section(std::string_view there) {
  return std::ranges::any_of(fields, [&](const ExperimentField& field) {
    return field.there.starts_with(there) && field.there.substr(there.size()).starts_with('.');
  });
}

}  // namespace lockstep
