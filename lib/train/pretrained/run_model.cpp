#include "train/pretrained/run_model.hpp"

#include <fmt/core.h>

#include <system_error>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "files/model_file.hpp"
#include "run/checkpoint_files.hpp"
#include "run/training_status.hpp"
#include "runtime/failure/contained_failure.hpp"

namespace lockstep {

namespace {

bool is_valid_checkpoint(const std::filesystem::path& checkpoint) try {
  read_weights(checkpoint);
  return true;
} catch (const Error&) {
  return false;
}

}  // namespace

std::optional<std::int64_t> step_of_model(const std::filesystem::path& file) try {
  return is_absent(file) ? std::nullopt : read_weights(file).step;
} catch (const Error&) {
  return std::nullopt;
}

std::optional<BestModelFile> best_model_of_run(const Summary& summary, const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / best_model_file;
  if (is_absent(path)) return std::nullopt;
  if (!summary.best_step) return BestModelFile{path, std::nullopt};
  const std::optional<std::int64_t> step = step_of_model(path);
  return BestModelFile{path, step == summary.best_step ? std::nullopt : step};
}

RunModel model_of_run(const std::filesystem::path& folder) {
  const Summary summary = read_summary(folder).value_or(Summary());
  const std::optional<BestModelFile> best = best_model_of_run(summary, folder);
  if (best && !best->other_step) return {best->path, fmt::format("{} of '{}'", best_model_file, folder.string())};
  if (summary.best_step) {
    const std::filesystem::path path = checkpoint_folder_of(summary, folder) / checkpoint_name(*summary.best_step);
    if (best ? is_valid_checkpoint(path) : !is_absent(path)) {
      return {path, fmt::format("the best checkpoint of '{}' (step {})", folder.string(), *summary.best_step)};
    }
  }
  if (best) {
    return {best->path,
            fmt::format("{} of '{}', the weights of step {} (those of its best test, step {}, do not exist)",
                        best_model_file, folder.string(), *best->other_step, *summary.best_step)};
  }
  const std::filesystem::path last = folder / "model.h5";
  const std::filesystem::path of_search = folder / "best.h5";
  if (is_absent(last) && !is_absent(of_search)) {
    return {of_search, fmt::format("best.h5 of '{}', the model of the search's best trial", folder.string())};
  }
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
