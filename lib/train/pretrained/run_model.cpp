#include "train/pretrained/run_model.hpp"

#include <fmt/core.h>

#include <system_error>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "files/model_file.hpp"
#include "run/checkpoint_files.hpp"
#include "run/training_status.hpp"
#include "runtime/failure/contained_failure.hpp"

namespace lockstep {

RunModel model_of_run(const std::filesystem::path& folder) {
  const std::filesystem::path best_file = folder / best_model_file;
  if (!is_absent(best_file)) return {best_file, fmt::format("{} of '{}'", best_model_file, folder.string())};
  const Summary summary = read_summary(folder).value_or(Summary());
  if (summary.best_step) {
    const std::filesystem::path best = checkpoint_folder_of(summary, folder) / checkpoint_name(*summary.best_step);
    if (!is_absent(best)) {
      return {best, fmt::format("the best checkpoint of '{}' (step {})", folder.string(), *summary.best_step)};
    }
  }
  const std::filesystem::path last = folder / "model.h5";
  require(!is_absent(last), Failure::usage,
          "'{}' holds no model: no model-best.h5, no checkpoint of the best test, and no model.h5. Choose a model file "
          "or the output folder of a training.",
          folder.string());
  return {last, fmt::format("model.h5 of '{}', the final weights (the weights of its best test do not exist)",
                            folder.string())};
}

RunModel named_model(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error) ? model_of_run(path) : RunModel{path, ""};
}

RunModel named_model(const Communicator& world, const std::filesystem::path& path) {
  RunModel model;
  model.file = from_rank_0(world, [&] {
    model = named_model(path);
    return model.file.string();
  });
  return {model.file, world.broadcast(model.description, 0)};
}

}  // namespace lockstep
