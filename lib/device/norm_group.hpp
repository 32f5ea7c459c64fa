// The communication that a synchronized batch norm needs. A device knows no communicator: the code that runs the step
// provides the group.
#pragma once

#include <span>

namespace lockstep {

class NormGroup {
 public:
  virtual ~NormGroup() = default;

  virtual int size() const = 0;  // number of ranks, including this one
  // Collective within the group, blocking. `all` receives each rank's `own`, in rank order. All have the same length.
  virtual void all_gather(std::span<const double> own, std::span<double> all) = 0;
};

}  // namespace lockstep
