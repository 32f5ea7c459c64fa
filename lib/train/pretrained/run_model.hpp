// The model that a user names: a file, or the output folder of a training.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "comm/communicator.hpp"
#include "run/summary.hpp"

namespace lockstep {

// std::nullopt if the model file is missing, damaged, or has no step.
std::optional<std::int64_t> step_of_model(const std::filesystem::path& file);

// model-best.h5 in the output folder of a training.
struct BestModelFile {
  std::filesystem::path path;
  // The step whose weights it has, if that is not the summary's best one: after a full disk, it may be older.
  std::optional<std::int64_t> other_step;
};
// std::nullopt if there is none. Reads the file, to know its step.
std::optional<BestModelFile> best_model_of_run(const Summary& summary, const std::filesystem::path& folder);

struct RunModel {
  std::filesystem::path file;
  std::string description;  // "the best checkpoint of 'runs/r20' (step 640)"; empty if the user named a file
};

// The first that exists: model-best.h5 of the best test, the checkpoint of the best test (checkpoint_folder_of()),
// model-best.h5 of another step, model.h5, best.h5 of a search. Throws Error(usage) if none exists. The checkpoint must
// be valid to precede a model-best.h5.
RunModel model_of_run(const std::filesystem::path& folder);

// `path` itself; if it is a folder, model_of_run().
RunModel named_model(const std::filesystem::path& path);
// Collective. All ranks get rank 0's result.
RunModel named_model(const Communicator& world, const std::filesystem::path& path);

}  // namespace lockstep
