// What may change when a training goes on from a checkpoint, and what may not.
//
//   may change    what a place brings along: ranks, threads, node, device, instruction set, kernels, versions, how
//                 gradients are summed; the bits then differ, which is said once
//                 what no weight knows of: a run plan, and the fields of a recipe whose entry in recipe/fields.cpp says
//                 so
//   may not       what the user chose to learn with: the other fields of a recipe, also where they only decide how
//                 numbers are rounded; a difference is refused
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "backend/session.hpp"
#include "dataset/shards/manifest.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "recipe/recipe.hpp"

namespace lockstep {

// The recipe with what it leaves open filled in: the global batch as it came out for this number of ranks, and the
// augmentation for these data. Its arithmetic is what `device` does of it.
Recipe completed(Recipe recipe, std::int64_t global_batch, const Manifest& data, const Device& device);

// What a checkpoint keeps of a completed recipe: its fixed fields by name, and what it was trained on.
nlohmann::json fixed_recipe(const Recipe& recipe, const Manifest& data);

// Throws Error(usage) naming the first field that differs: the data first, for others follow from them. A field that
// the earlier version did not have stands at its default, by which a training is what it was before. `origin`: the
// earlier training's folder, or the checkpoint.
void require_same_recipe(const nlohmann::json& earlier, const nlohmann::json& now, const std::filesystem::path& origin);

// Where the batch is stated for each rank, or nobody stated one, a checkpoint's global batch stays, whatever the number
// of ranks now. Throws Error(usage) where those cannot share it, naming the next smaller number that can.
BatchOptions batch_of_resumed(const BatchOptions& options, const nlohmann::json& earlier, int ranks);

// `gradients` as in Origin.
Origin this_origin(const Session& session, const std::string& gradients);
// Why the bits will not be those of an uninterrupted training: ranks and reductions (unless sums are exact), kernels
// and versions that differ; else empty.
std::string origin_difference(const Origin& earlier, const Origin& now, Sums sums);
// What would have kept them, in sentences; empty where nothing would.
std::string same_bits_advice(const Origin& earlier, const Origin& now, Sums sums);

}  // namespace lockstep
