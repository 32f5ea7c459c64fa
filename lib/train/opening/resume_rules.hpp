// Rules for resuming: what may change when a training is resumed from a checkpoint.
//
//   may change    the environment: ranks, threads, nodes, device, instruction set, kernels, versions, reduction of
//                 gradients. Results then differ in the last bits, which is logged once.
//                 what does not affect weights: run options, and recipe fields that recipe/fields.cpp marks so
//   may not       how the user chose to train: all other recipe fields, even if they affect only rounding. A difference
//                 is refused.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "backend/session.hpp"
#include "dataset/shards/manifest.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "recipe/recipe.hpp"

namespace lockstep {

// The recipe with defaults filled in: the global batch for this number of ranks, the augmentation for these data, and
// the arithmetic that `device` uses.
Recipe completed(Recipe recipe, std::int64_t global_batch, const Manifest& data, const Device& device);

// What a checkpoint keeps of a completed recipe: its fixed fields by name, and the training data.
nlohmann::json fixed_recipe(const Recipe& recipe, const Manifest& data);

// Whether summary.json with these fields may be of the training with the fixed recipe `now`. A summary has the recipe
// that was given, so `now` is not completed either, and fields that completed() sets are not compared.
bool may_describe(const nlohmann::json& summary, const nlohmann::json& now);

// Throws Error(usage) naming the first field that differs. Data are compared first, because other fields depend on
// them. A field unknown to the earlier version has its default, which preserves the earlier behavior. `origin`: the
// earlier training's folder, or the checkpoint.
void require_same_recipe(const nlohmann::json& earlier, const nlohmann::json& now, const std::filesystem::path& origin);

// If the batch is given per rank, or not given, the checkpoint's global batch is kept for any number of ranks. Throws
// Error(usage) if `ranks` cannot share it, naming the next smaller number that can. `name`: what messages call one.
BatchOptions batch_of_resumed(const BatchOptions& options, const nlohmann::json& earlier, int ranks,
                              const char* name = "rank");

// `trainers`: the ranks that have samples. `gradients` as in Origin.
Origin this_origin(const Session& session, int trainers, const std::string& gradients);
// Why the results will not be bit-identical to an uninterrupted training: changes of ranks and reductions (unless sums
// are reproducible), kernels or versions. Empty if nothing changed.
std::string origin_difference(const Origin& earlier, const Origin& now, Sums sums);
// The option of the instruction set in Device::plan_conditions() of a CPU, such as "cpu: AVX2, bf16"; empty if this
// version does not know it.
std::string instruction_set_in(std::string_view plan_conditions);
// What would have preserved the bits, as sentences; empty if nothing would.
std::string same_bits_advice(const Origin& earlier, const Origin& now, Sums sums);

}  // namespace lockstep
