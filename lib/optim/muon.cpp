#include "optim/muon.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "device/flat/flat_passes.hpp"
#include "optim/update_spec.hpp"

namespace lockstep {
namespace {

constexpr std::array<float, 3> newton_schulz = {3.4445F, -4.7750F, 2.0315F};

Tensor make_matrix(Device& device, std::int64_t rows, std::int64_t columns) {
  return device.make({rows, columns}, DType::f32, Layout::plain);
}

}  // namespace

std::vector<const Parameter*> muon_weights(const ParameterStore& store, const OptimizerOptions& options) {
  std::vector<const Parameter*> weights;  // of all layers, in the order of forward
  for (const Parameter& parameter : store.parameters()) {
    if (parameter.role == ParameterRole::weight) weights.push_back(&parameter);
  }
  std::vector<const Parameter*> chosen;
  for (std::size_t index = 1; index + 1 < weights.size(); ++index) {
    const Parameter& weight = *weights[index];
    const bool learns = rate_scale_of(weight, options.rate_scales) > 0;
    if (weight.kind == ParameterKind::conv_weight && learns) chosen.push_back(&weight);
  }
  require(!chosen.empty(), Failure::usage,
          "--optimizer muon updates convolutions between the first and the last layer, but this network has none that "
          "learns. Use --optimizer sgd.");
  return chosen;
}

MuonDirections::MuonDirections(ParameterStore& store, const std::vector<const Parameter*>& weights,
                               const OptimizerOptions& options, Tensor velocity)
    : store_(store),
      momentum_{options.muon_momentum.value_or(default_muon_momentum), options.momentum_kind},
      ns_steps_(options.ns_steps.value_or(default_ns_steps)),
      velocity_(std::move(velocity)) {
  for (const Parameter* weight : weights) {
    matrices_.push_back(store.device().flat().matrices().matrix_of(weight->dims, weight->offset));
  }
}

void MuonDirections::find(const StepRecord& record) const {
  MatrixPasses& passes = store_.device().flat().matrices();
  for (const FlatMatrix& matrix : matrices_) {
    const Shape wide = wide_shape(matrix);
    const Tensor x = make_matrix(store_.device(), wide[0], wide[1]);
    passes.take_momentum(store_.gradients(), matrix, momentum_, record, velocity_, x);
    passes.put(orthogonalized(x), matrix, store_.gradients());
  }
}

Tensor MuonDirections::orthogonalized(Tensor x) const {
  Device& device = store_.device();
  Ops& ops = device.ops();
  const std::int64_t rows = x.shape()[0];
  Tensor next = make_matrix(device, rows, x.shape()[1]);
  const Tensor a = make_matrix(device, rows, rows);
  const Tensor b = make_matrix(device, rows, rows);
  for (int step = 0; step < ns_steps_; ++step) {
    ops.linear_forward(x, x, a);
    ops.linear_forward(a, a, b);
    device.flat().matrices().add_polynomial(a, newton_schulz, b);
    ops.linear_backward_data(b, x, next);
    std::swap(x, next);
  }
  return x;
}

}  // namespace lockstep
