#include "device/cuda/conv/plan_target.hpp"

namespace lockstep::cuda {

PlanTarget::PlanTarget(const std::string& properties) : properties_(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) {
  properties_->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                   static_cast<std::int64_t>(properties.size()), properties.data());
  properties_->finalize();
}

void PlanTarget::set_in_graph(Descriptor& graph) const {
  if (!properties_) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle_);
}

void PlanTarget::set_in_heuristics(Descriptor& heuristics) const {
  if (properties_) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *properties_);
}

void PlanTarget::set_in_engine(Descriptor& engine) const {
  if (properties_) engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, *properties_);
}

void PlanTarget::set_in_plan(Descriptor& plan) const {
  if (properties_) {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *properties_);
  } else {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle_);
  }
}

}  // namespace lockstep::cuda
