// The evaluator beside a training: it tests each checkpoint as it appears, and keeps the list.
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
  ImageOptions images = {};  // of the options for tests
  int loader_threads = 1;
  TestTimeAugmentation view = TestTimeAugmentation::plain;
};

// Collective. Returns when the training has ended, however it did, and all its checkpoints are in the list; waits while
// there is none yet. What an earlier call has scored is passed over. A damaged checkpoint is named and passed over.
// Throws Error(bad_data) if the data are not those of the training's model, Error(usage) if the list cannot be written.
void follow_training(Session& session, const FollowOptions& options);

}  // namespace lockstep
