#include "optim/optimizer.hpp"

#include <fmt/ranges.h>

#include <cassert>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/text/printable.hpp"
#include "device/flat/flat_passes.hpp"
#include "optim/muon.hpp"
#include "optim/update_spec.hpp"

namespace lockstep {
namespace {

std::string describe_names(const std::set<std::string>& names) {
  if (names.empty()) return "nothing";
  return fmt::format("'{}'", fmt::join(names, "', '"));
}

// One pass over the flat arrays with one update rule. With Muon, the directions of matrices come first.
class FlatOptimizer final : public Optimizer {
 public:
  FlatOptimizer(ParameterStore& store, const OptimizerOptions& options, std::optional<std::vector<FlatPart>> parts) {
    UpdateSpec spec = update_spec(store, options);
    UpdateArrays arrays{store.gradients(), store.values(), {}, std::move(parts)};
    std::int64_t elements = 0;
    for (const FlatPart& part : parts_of(arrays)) elements += part.count;
    for (std::string& name : spec.states) {
      arrays.states.push_back(store.device().make_persistent(elements, DType::f32));
      state_.push_back({std::move(name), arrays.states.back()});
    }
    if (options.clip.norm || options.clip.value) {
      UpdateArrays clipped = arrays;
      if (needs_norms(options)) clipped.parts.reset();
      clip_ = store.device().flat().make_clip(options.clip, clipped);
    }
    if (!spec.matrices.empty() && elements > 0) {
      assert(elements == store.gradient_count());
      directions_.emplace(store, spec.matrices, options, arrays.states.front());
    }
    update_ = store.device().flat().make_update(spec.rule, spec.runs, arrays);
  }

  void step(const StepRecord& record) override {
    if (clip_) clip_->run(record);
    if (directions_) directions_->find(record);
    update_->run(record);
  }
  const std::vector<StateArray>& state() const override { return state_; }

 private:
  std::vector<StateArray> state_;
  std::unique_ptr<FlatUpdate> clip_;          // null: no gradient clipping
  std::optional<MuonDirections> directions_;  // only with OptimizerKind::muon
  std::unique_ptr<FlatUpdate> update_;
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(ParameterStore& store, const OptimizerOptions& options,
                                          std::optional<std::vector<FlatPart>> parts) {
  return std::make_unique<FlatOptimizer>(store, options, std::move(parts));
}

bool needs_whole_matrices(const OptimizerOptions& options) { return options.kind == OptimizerKind::muon; }

bool needs_norms(const OptimizerOptions& options) {
  return options.clip.norm.has_value() || options.kind == OptimizerKind::lars;
}

OptimizerState state_of(const ParameterStore& store, const Optimizer& optimizer) {
  OptimizerState state;
  for (const StateArray& array : optimizer.state()) state.emplace(array.name, store.entries_of(array.values));
  return state;
}

void require_same_arrays(const Optimizer& optimizer, const OptimizerState& state) {
  std::set<std::string> kept;
  for (const StateArray& array : optimizer.state()) kept.insert(array.name);
  require_same_arrays(kept, state);
}

void require_same_arrays(const std::set<std::string>& kept, const OptimizerState& state) {
  std::set<std::string> given;
  for (const auto& [name, entries] : state) given.insert(printable(name));
  require(given == kept, Failure::usage,
          "the checkpoint was written with another optimizer: it stores {} per parameter, but this training needs {}. "
          "So it cannot resume. Use the same optimizer, or start from scratch.",
          describe_names(given), describe_names(kept));
}

void assign_state(ParameterStore& store, const Optimizer& optimizer, const OptimizerState& state) {
  for (const StateArray& array : optimizer.state()) store.assign_to(array.values, state.at(array.name));
}

}  // namespace lockstep
