#include "train/pretrained/run_model.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "comm/from_rank_0.hpp"
#include "files/checkpoint/checkpoint_folder.hpp"
#include "files/model_file.hpp"
#include "train/run_summary.hpp"

namespace lockstep {
namespace {

// The step of the best test; null if there was none or it is not known.
nlohmann::json best_step_of(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "summary.json";
  if (is_absent(file)) return {};
  const nlohmann::json summary = read_summary(file);
  return summary.is_object() ? summary.value("best_step", nlohmann::json()) : nlohmann::json();
}

}  // namespace

RunModel model_of_run(const std::filesystem::path& folder) {
  const std::filesystem::path best_file = folder / best_model_file;
  if (!is_absent(best_file)) return {best_file, fmt::format("{} of '{}'", best_model_file, folder.string())};
  const nlohmann::json best = best_step_of(folder);
  if (best.is_number_integer()) {
    const std::map<std::int64_t, std::filesystem::path> checkpoints = checkpoints_in(folder / "checkpoints");
    const auto found = checkpoints.find(best.get<std::int64_t>());
    if (found != checkpoints.end()) {
      return {found->second, fmt::format("the best checkpoint of '{}' (step {})", folder.string(), found->first)};
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
