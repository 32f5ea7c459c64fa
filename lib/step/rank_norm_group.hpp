// Ranks of a training whose batch norms take their statistics together (--sync-batch-norm).
#pragma once

#include <memory>
#include <span>

#include "backend/session.hpp"
#include "device/norm_group.hpp"
#include "nn/parameter_store.hpp"
#include "recipe/recipe.hpp"

namespace lockstep {

class RankNormGroup final : public NormGroup {
 public:
  // Collective in `world`, whose ranks are taken `size` at a time, in their order.
  RankNormGroup(const Communicator& world, int size);

  int size() const override { return group_.size(); }
  void all_gather(std::span<const double> own, std::span<double> all) override;

 private:
  Communicator group_;
};

// Collective. What the recipe says of a model whose layers are registered with `store`; null where each micro-batch has
// statistics of its own. Throws as norm_group_size(), and Error(usage) for a device or a model that has no such norms.
std::unique_ptr<NormGroup> make_norm_group(const Session& session, const Recipe& recipe, const LoaderShare& share,
                                           const ParameterStore& store);

}  // namespace lockstep
