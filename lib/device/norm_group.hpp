// What a batch norm in training asks of other ranks where they take their statistics together. A device knows no
// communicator: whoever runs the step gives it a group.
#pragma once

#include <span>

namespace lockstep {

class NormGroup {
 public:
  virtual ~NormGroup() = default;

  virtual int size() const = 0;  // ranks, this one included
  // Collective within the group, blocking: `all` gets what each rank gives as `own`, of one length, in the order of
  // ranks.
  virtual void all_gather(std::span<const double> own, std::span<double> all) = 0;
};

}  // namespace lockstep
