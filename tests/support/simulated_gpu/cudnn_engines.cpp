// The engines of the simulated cuDNN, and the order in which its heuristics return them. Those that lib must leave out
// come first, or are fast.
#include <algorithm>
#include <array>
#include <utility>

#include "support/simulated_gpu/descriptor.hpp"
#include "support/simulated_gpu/engines.hpp"

namespace lockstep::simulated {
namespace {

struct Proposal {
  std::int64_t engine;
  std::int64_t tile_size;
};

// Both modes may propose the same.
std::vector<Proposal> proposals(cudnnBackendHeurMode_t mode) {
  if (mode == CUDNN_HEUR_MODE_FALLBACK) return {{3, 1}, {0, 0}};
  return {{5, 0}, {1, 0}, {2, 0}, {4, 0}, {6, 0}, {3, 1}, {3, 2}, {3, 0}, {3, 3}, {0, 0}};
}

void describe_engine(const Engine& engine, const CudnnDescriptor& heuristics, CudnnDescriptor& made) {
  made.put(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, std::vector{engine.index});
  made.put(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, engine.notes);
  made.convolution = heuristics.convolution;
  made.is_final = true;
}

}  // namespace

const std::vector<Engine>& engines() {
  static const std::vector<Engine> all{
      {0, {}, Rounding::none, 0, 0, 0.02, Refuses::nothing},
      {1, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, Rounding::changes_each, 0, 0, 0.01, Refuses::nothing},
      {2, {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}, Rounding::half_sums, 0, 0, 0.001, Refuses::nothing},
      {3, {}, Rounding::none, 4, 1000, 0.002, Refuses::nothing},
      {4, {}, Rounding::none, 0, 0, 0.001, Refuses::to_finalize},
      {5, {}, Rounding::none, 0, 512, 0.001, Refuses::to_run},
      {6, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, Rounding::tf32_inputs, 0, 4096, 0.003, Refuses::nothing},
  };
  return all;
}

double Engine::milliseconds(const Convolution& convolution) const {
  const auto& [n, out, rows, columns] = convolution.y.dims;
  const auto& [out_again, in, kernel_rows, kernel_columns] = convolution.weight.dims;
  return 1e-6 * nanoseconds * static_cast<double>(n * out * rows * columns * in * kernel_rows * kernel_columns);
}

const Engine* find_engine(std::int64_t index) {
  const auto found = std::ranges::find(engines(), index, &Engine::index);
  return found == engines().end() ? nullptr : &*found;
}

std::int64_t count_results(const CudnnDescriptor& heuristics) {
  return std::ssize(proposals(heuristics.value<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE)));
}

// The engine and the knobs of the result are descriptors that live as long as the process, as those of a library do.
void fill_result(const CudnnDescriptor& heuristics, std::int64_t index, CudnnDescriptor& config) {
  const auto all = proposals(heuristics.value<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE));
  const Proposal& proposal = all[static_cast<std::size_t>(index)];
  const Engine& engine = *find_engine(proposal.engine);
  CudnnDescriptor* const described = make_descriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  describe_engine(engine, heuristics, *described);
  std::vector<const CudnnDescriptor*> knobs;
  if (engine.tile_sizes > 0) {
    CudnnDescriptor* const knob = make_descriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    knob->put(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, std::vector{CUDNN_KNOB_TYPE_TILE_SIZE});
    knob->put(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, std::vector{proposal.tile_size});
    knob->is_final = true;
    knobs.push_back(knob);
  }
  config.put(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
             std::vector<const CudnnDescriptor*>{described});
  config.put(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, knobs);
  config.convolution = described->convolution;
  config.is_final = true;
}

}  // namespace lockstep::simulated
