#include "train/pretrained/initial_weights.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/counted.hpp"
#include "comm/same_on_ranks.hpp"
#include "dataset/same_data.hpp"
#include "files/import/pretrained_weights.hpp"
#include "nn/initialize.hpp"
#include "run/checkpoint_files.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "train/pretrained/assign_pretrained.hpp"
#include "train/pretrained/given_network.hpp"
#include "train/pretrained/run_model.hpp"
#include "train/pretrained/whitening.hpp"

namespace lockstep {

namespace {

// Uses the bias, which has one value per class in the files of any program.
void require_classes_of_data(const std::filesystem::path& path, const std::vector<ParameterStore::Entry>& entries,
                             const Model& model) {
  const auto bias = std::ranges::find(entries, model.store.parameters().back().name, &ParameterStore::Entry::name);
  if (bias == entries.end() || bias->dims.size() != 1) return;
  require(bias->dims.front() == model.options.classes, Failure::usage,
          "the last layer of '{}' has {}, but the data have {}. To start with a new last layer, add --new-head.",
          path.string(), counted(bias->dims.front(), "class", "classes"), model.options.classes);
}

std::string words_on_head(const Recipe& recipe, const Model& model) {
  if (recipe.init.head == Head::as_written) return "";
  return fmt::format(", except for the last layer, which is new ({})",
                     counted(model.options.classes, "class", "classes"));
}

// Damaged checkpoints count, because only reading them shows the damage.
bool may_go_on(const CheckpointOptions& plan) {
  return plan.resume == "auto" ? !checkpoints_in(plan.folder).empty() : plan.resume != "never";
}

// `path` is for messages.
void assign_initial_weights(const std::filesystem::path& path, std::vector<ParameterStore::Entry> entries, Head head,
                            Model& model) {
  const std::optional<std::string> words = describe_prefix(path, remove_prefix(path, entries, model.store, head));
  if (words) log::info(*words);
  if (head == Head::as_written) require_classes_of_data(path, entries, model);
  if (head == Head::fresh) {
    const std::string name = head_of(model.store);
    const auto is_head = [&name](const ParameterStore::Entry& entry) { return entry.name.starts_with(name); };
    std::erase_if(entries, is_head);
    for (ParameterStore::Entry& own : model.store.entries()) {
      if (is_head(own)) entries.push_back(std::move(own));
    }
  }
  assign_pretrained(path, std::move(entries), model);
}

}  // namespace

void require_initial_weights(const Communicator& world, const InitialWeights& init,
                             const CheckpointOptions& checkpoints) {
  on_rank_0(world, [&] {
    if (!init.file.empty() && !may_go_on(checkpoints)) open_to_read(named_model(init.file).file);
  });
}

void load_initial_weights(const std::filesystem::path& path, Head head, Model& model) {
  assign_initial_weights(path, read_pretrained_weights(path).entries, head, model);
}

void begin_weights(const Communicator& world, const Recipe& recipe, const Dataset& train, const ImageRules& rules,
                   Model& model) {
  on_all_ranks(world, [&] {
    initialize(model.store, recipe.seed);
    if (recipe.first_convolution == FirstConvolution::whitened) whiten(model, train, rules);
  });
  std::string source;
  if (!recipe.init.file.empty()) {
    const RunModel named = named_model(world, recipe.init.file);
    source = named.description.empty() ? fmt::format("'{}'", named.file.string()) : named.description;
    on_all_ranks(world, [&] { load_initial_weights(named.file, recipe.init.head, model); });
  } else if (recipe.init.of_network == WeightsOfNetwork::ignored) {
    log::info("random weights for the network in '{}'", recipe.model);
  } else if (!model.options.network.empty()) {
    source = fmt::format("'{}'", recipe.model);
    on_all_ranks(world, [&] {
      assign_initial_weights(recipe.model, given_weights(recipe, model.options), recipe.init.head, model);
    });
  }
  if (!source.empty()) log::info("weights from {}{}", source, words_on_head(recipe, model));
  const std::string name = source.empty() ? "initial weights" : "weights in " + source;
  require_same_on_ranks(world, {{name, "hash " + model.store.weights_hash()}}, same_files_advice);
}

}  // namespace lockstep
