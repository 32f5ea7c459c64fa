// The model of a training that is named by its output folder.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep {

struct RunModel {
  std::filesystem::path file;
  std::string words;  // "the best checkpoint of 'runs/r20' (step 640)"
};

// The checkpoint of the best test where it is kept in the folder, else model.h5. Throws Error(usage) where neither is
// there.
RunModel model_of_run(const std::filesystem::path& folder);

}  // namespace lockstep
