// Thrown by a step that cannot end, before anything but gradients has changed: the training is as after the step
// before.
#pragma once

#include "base/error.hpp"

namespace lockstep {

class StepGivenUp : public Error {
 public:
  explicit StepGivenUp(const Error& reason) : Error(reason.failure(), reason.what()) {}
};

}  // namespace lockstep
