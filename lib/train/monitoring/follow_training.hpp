// Evaluator for a running training: evaluates each checkpoint as it appears, and keeps a list of results.
#pragma once

#include <filesystem>

#include "backend/session.hpp"
#include "dataset/split.hpp"
#include "recipe/recipe.hpp"
#include "recipe/run_options.hpp"

namespace lockstep {

struct FollowOptions {
  std::filesystem::path folder;  // the training's output folder
  std::filesystem::path data;    // the folder of the split
  Split split = Split::test;
  ImageOptions images = {};  // evaluation options only
  int loader_threads = 1;
  TestTimeAugmentation view = TestTimeAugmentation::plain;
};

// Collective. Waits for checkpoints, and returns when the training has ended, in any way, and all its checkpoints are
// evaluated. Skips checkpoints that an earlier call has evaluated with the same data and options. Skips damaged
// checkpoints and logs their names. Throws Error(bad_data) if the data do not fit the training's model, Error(usage) if
// the list cannot be written.
void follow_training(Session& session, const FollowOptions& options);

}  // namespace lockstep
