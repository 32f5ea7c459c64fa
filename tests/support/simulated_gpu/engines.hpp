// The engines of the simulated cuDNN.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <vector>

#include "support/simulated_gpu/convolution.hpp"

namespace lockstep::simulated {

enum class Refuses : std::uint8_t { nothing, to_finalize, to_run };

struct Engine {
  std::int64_t index;
  std::vector<cudnnBackendNumericalNote_t> notes;
  Rounding rounding;
  std::int64_t tile_sizes;  // values 0, 1, ... of its knob; 0: it has no knob
  std::int64_t workspace_bytes;
  double nanoseconds;  // per product
  Refuses refuses;

  double milliseconds(const Convolution& convolution) const;  // on the simulated clock
};

const std::vector<Engine>& engines();
const Engine* find_engine(std::int64_t index);  // null: there is none

}  // namespace lockstep::simulated
