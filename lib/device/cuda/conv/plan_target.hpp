// The GPU for which cuDNN makes plans: the current one, or one that is only described. For that one, cuDNN 9.8 and
// later make plans on machines without a GPU, too.
#pragma once

#include <optional>
#include <string>

#include "device/cuda/conv/cudnn_descriptor.hpp"

namespace lockstep::cuda {

class PlanTarget {
 public:
  // The current GPU. The handle outlives this.
  explicit PlanTarget(cudnnHandle_t handle) : handle_(handle) {}
  // `properties`: JSON, as CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION has them. Throws Error if cuDNN cannot read it.
  explicit PlanTarget(const std::string& properties);

  // Sets the attribute of a descriptor of this type that names the GPU.
  void set_in_graph(Descriptor& graph) const;
  void set_in_heuristics(Descriptor& heuristics) const;
  void set_in_engine(Descriptor& engine) const;
  void set_in_plan(Descriptor& plan) const;

 private:
  cudnnHandle_t handle_ = nullptr;        // null: described
  std::optional<Descriptor> properties_;  // empty: the handle's GPU
};

}  // namespace lockstep::cuda
