// The hyperparameters of an experiment file as options of trainings.
#pragma once

#include <cstdint>

#include "search/determined/experiment_draft.hpp"

namespace lockstep {

// `batches_per_step` is the file's aggregation_frequency.
void translate_hyperparameters(ExperimentDraft& draft, std::int64_t batches_per_step);

}  // namespace lockstep
