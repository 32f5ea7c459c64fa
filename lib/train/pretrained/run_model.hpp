// The model that a user names: a file, or a training by its output folder.
#pragma once

#include <filesystem>
#include <string>

#include "comm/communicator.hpp"

namespace lockstep {

struct RunModel {
  std::filesystem::path file;
  std::string description;  // "the best checkpoint of 'runs/r20' (step 640)"; empty of a file that was named
};

// model-best.h5, else the checkpoint of the best test where it is kept in the folder, else model.h5. Throws
// Error(usage) where none of them is there.
RunModel model_of_run(const std::filesystem::path& folder);

// `path` itself, or of a folder model_of_run().
RunModel named_model(const std::filesystem::path& path);
// Collective. The same on every rank: what rank 0 finds.
RunModel named_model(const Communicator& world, const std::filesystem::path& path);

}  // namespace lockstep
