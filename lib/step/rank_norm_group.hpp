// The ranks that share the statistics of their batch norms (--sync-batch-norm).
#pragma once

#include <memory>
#include <span>

#include "backend/session.hpp"
#include "device/norm_group.hpp"
#include "nn/parameter_store.hpp"
#include "recipe/recipe.hpp"

namespace lockstep {

class SyncBatchNormGroup final : public NormGroup {
 public:
  // Collective in `world`. Groups are `size` consecutive ranks.
  SyncBatchNormGroup(const Communicator& world, int size);

  int size() const override { return group_.size(); }
  void all_gather(std::span<const double> own, std::span<double> all) override;

 private:
  Communicator group_;
};

// Collective. The norm group of the recipe, for a model whose layers are registered with `store`. Null if each
// micro-batch has its own statistics. Throws AgreedError as norm_group_size(), and usage if the device or the model
// does not support synchronized batch norm.
std::unique_ptr<NormGroup> make_norm_group(const Session& session, const Recipe& recipe, const LoaderShare& share,
                                           const ParameterStore& store);

}  // namespace lockstep
