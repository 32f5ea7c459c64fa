// The one list of what may change when a training goes on from a checkpoint, and what may not.
//
//   may change    what a place brings along: ranks, threads, node, device, instruction set, kernels, versions, how
//                 gradients are summed; the bits then differ, which is said once
//                 what no weight knows of: paths, epochs, reports, checkpoints
//   may not       what the user chose to learn with: everything in fixed_recipe(), also where it only decides how
//                 numbers are rounded; a difference is refused
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "dataset/shards/manifest.hpp"
#include "device/device.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "recipe/recipe.hpp"
#include "runtime/session.hpp"

namespace lockstep {

// How a device rounds, as it was told to.
struct Arithmetic {
  DType precision = DType::f32;  // of activations
  bool tf32 = false;             // for products of fp32 operands
  bool direct_convolutions = false;
};
Arithmetic arithmetic_of(const Device& device);

// One plain value for each field, named as the option is. `global_batch` as it came out for this number of ranks.
nlohmann::json fixed_recipe(const Recipe& recipe, std::int64_t global_batch, const Manifest& data,
                            const Arithmetic& arithmetic);

// Throws Error(usage) naming the first field that differs.
void require_same_recipe(const nlohmann::json& earlier, const nlohmann::json& now);

// Where the batch is stated for each rank, a checkpoint's global batch stays, whatever the number of ranks now.
BatchPlan batch_of_resumed(const BatchPlan& plan, const nlohmann::json& earlier);

// `gradients` as in Origin.
Origin this_origin(const Session& session, const std::string& gradients);
// Why the bits will not be those of an uninterrupted training: ranks and reductions (unless sums are exact), kernels
// and versions that differ; else empty.
std::string origin_difference(const Origin& earlier, const Origin& now, Sums sums);

}  // namespace lockstep
