// The model that a user names: a file, or the output folder of a training.
#pragma once

#include <filesystem>
#include <string>

#include "comm/communicator.hpp"

namespace lockstep {

struct RunModel {
  std::filesystem::path file;
  std::string description;  // "the best checkpoint of 'runs/r20' (step 640)"; empty if the user named a file
};

// The first that exists: model-best.h5, the checkpoint of the best test (checkpoint_folder_of()), model.h5. Throws
// Error(usage) if none exists.
RunModel model_of_run(const std::filesystem::path& folder);

// `path` itself; if it is a folder, model_of_run().
RunModel named_model(const std::filesystem::path& path);
// Collective. All ranks get rank 0's result.
RunModel named_model(const Communicator& world, const std::filesystem::path& path);

}  // namespace lockstep
