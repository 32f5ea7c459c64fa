#include "train/remote/offer.hpp"

#include <fmt/ranges.h>

#include <span>

#include "backend/versions.hpp"
#include "base/error.hpp"
#include "base/text/json_text.hpp"
#include "dataset/same_data.hpp"
#include "dataset/shards/hash.hpp"
#include "device/cpu/instruction_sets/instruction_set.hpp"
#include "recipe/fields.hpp"
#include "run/run_file.hpp"
#include "train/opening/resume_rules.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t most_trainers = 65536;

std::string version_of(const Session& session) {
  const Invocation& started = session.invocation;
  return fmt::format("{} ({}{}{})", lockstep_version(), started.commit, started.commit.empty() ? "" : ", ",
                     started.build);
}

// The global batch that this training has, so that its trainers need no checkpoint to know it.
Recipe with_batch(Recipe recipe, std::int64_t global_batch) {
  recipe.batch.global_batch = {global_batch, ChosenBy::user};
  recipe.batch.batch_per_rank.reset();
  return recipe;
}

std::string identity_of(const TrainingData& data) {
  return identity_of_data(split_folder("", Split::train), data.manifest()).value;
}

// Of all names and shapes, in the order of the flat arrays.
std::string layout_of(const Model& model) {
  std::string text = model.options.network;
  for (const Parameter& parameter : model.store.parameters()) {
    text += fmt::format("\n{} {} {}", parameter.name, fmt::join(parameter.dims, " "), parameter.offset);
  }
  for (const Statistic& statistic : model.store.statistics())
    text += fmt::format("\n{} {}", statistic.name, statistic.offset);
  return xxh3_64_hex(std::as_bytes(std::span(text)));
}

// Arrays travel in the device's layout, and their bits depend on the instruction set.
void take_instruction_set(const nlohmann::json& offer, std::string& own) {
  const std::string of_server = text_in(offer, "instruction_set");
  require(own == "auto" || own == of_server, Failure::usage,
          "--instruction-set {} is not that of the server, {}. Leave out --instruction-set.", own, of_server);
  try {
    cpu::choose_instruction_set(of_server);
  } catch (const Error&) {
    throw Error(Failure::usage, fmt::format("the server computes with --instruction-set {}, which this processor does "
                                            "not support. Start the server with one that all nodes support, such as "
                                            "avx2.",
                                            of_server));
  }
  own = of_server;
}

}  // namespace

std::string offer_to_trainers(const OpenedTraining& training) {
  const Recipe recipe = with_batch(training.recipe, training.data->share.stated_batch());
  return json_text({{"version", version_of(training.session)},
                    {"recipe", json_of(Settings{recipe, {}}, Field::Part::recipe)},
                    {"trainers", training.run.sums.trainers},
                    {"data", std::filesystem::absolute(training.run.data).string()},
                    {"data_identity", identity_of(*training.data)},
                    {"instruction_set", instruction_set_in(training.session.device().plan_conditions())},
                    {"model_layout", layout_of(training.learner->model)}});
}

ValidSettings accept_offer(const nlohmann::json& offer, const Session& session, const RunOptions& own) {
  const std::string version = text_in(offer, "version");
  require(version == version_of(session), Failure::usage,
          "this trainer is Lockstep {}, but its server is Lockstep {}. Start both from the same installation.",
          version_of(session), version);
  const std::int64_t trainers = count_in(offer, "trainers").value_or(0);
  bool is_whole = trainers >= 1 && trainers <= most_trainers && offer.contains("recipe") && offer["recipe"].is_object();
  Settings settings{{}, own};
  settings.recipe.epochs.by = ChosenBy::program;  // unless they are stated
  for (const Field& field : training_fields()) {
    if (field.part != Field::Part::recipe || !is_whole) continue;
    is_whole = offer["recipe"].contains(field.name);
    const bool is_stated = is_whole && !offer["recipe"][field.name].is_null();
    if (is_stated) is_whole = set_from_json(field, settings, offer["recipe"][field.name]).empty();
  }
  require(is_whole, Failure::other, "the server's offer is damaged (a bug). Please report it.");
  settings.run.sums.trainers = static_cast<int>(trainers);
  take_instruction_set(offer, settings.run.device.instruction_set);
  if (settings.run.data.empty()) settings.run.data = text_in(offer, "data");
  return ValidSettings(std::move(settings));
}

void require_same_training(const nlohmann::json& offer, const TrainingData& data, const Model& model) {
  const std::string server_data = text_in(offer, "data_identity");
  require(server_data == identity_of(data), Failure::usage,
          "the training set has {} here, but {} at the server. Use a copy of the server's data (--data).",
          identity_of(data), server_data);
  require(text_in(offer, "model_layout") == layout_of(model), Failure::usage,
          "the model '{}' is another network here than at the server. Use a copy of the server's ONNX file, under the "
          "same path.",
          model.options.name);
}

}  // namespace lockstep
