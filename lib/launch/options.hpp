// Options that programs share, declared once, in groups. They write straight into the recipe, whose values before
// parsing are the defaults that --help shows.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "device/device.hpp"
#include "recipe/recipe.hpp"

namespace lockstep {

// What a program computes on. DeviceOptions::verbose prints each kernel choice.
void declare_device(CLI::App& app, DeviceOptions& device);

void declare_data(CLI::App& app, Recipe& recipe);        // --data --augment --loader-threads
void declare_model(CLI::App& app, Recipe& recipe);       // --model --epochs --seed --label-smoothing
void declare_batch(CLI::App& app, Recipe& recipe);       // --global-batch | --batch-per-rank, --accumulate
void declare_optimizer(CLI::App& app, Recipe& recipe);   // --momentum --nesterov --weight-decay --no-decay-norm
void declare_schedule(CLI::App& app, Recipe& recipe);    // --lr --lr-batch --schedule --warmup --milestones --lr-factor
void declare_reduce(CLI::App& app, ReducePlan& reduce);  // --reduce --bucket-mib
void declare_output(CLI::App& app, Recipe& recipe);      // --output --report-every
void declare_watch(CLI::App& app, Recipe& recipe);       // --hang-timeout --audit-every
// --checkpoints --checkpoint-every --keep-latest --keep-best --resume --init-from --new-head --time-limit
void declare_checkpoints(CLI::App& app, Recipe& recipe);

// All groups that a training takes.
void declare_training(CLI::App& app, Recipe& recipe, DeviceOptions& device);

}  // namespace lockstep
