// Interface that turns each rank's gradients of a step into global gradients.
//
// A step announces each micro-batch, passes each gradient as backward completes it, and calls finish(). Then the flat
// gradient buffer is summed over micro-batches and ranks, identically on every rank. Implementations decide when and in
// which form data is sent.
#pragma once

#include <cstddef>
#include <string>

#include "nn/layer.hpp"

namespace lockstep {

// Host time that the exchange has cost this rank so far.
struct ExchangeCost {
  double within_backward_ms = 0;  // spent during backward, if the host does the work
  double after_backward_ms = 0;   // spent waiting in finish(): not overlapped
};

class Exchange : public GradientSink {
 public:
  // From now on, counts this rank's non-finite gradients in the overflow slot before the sum, so that every rank learns
  // of any overflow.
  virtual void count_overflow() = 0;

  // Call before each micro-batch of a step, in order. During the last micro-batch, ready() starts the sums.
  virtual void begin_micro_batch(int micro_batch, int micro_batches) = 0;
  // Collective, stream-ordered. Call once after the last micro-batch's backward. If needs_host(), all sums start here,
  // so that everything before can be captured in a graph.
  virtual void finish() = 0;
  // Whether finish() needs the host although the device has its own queue. finish() then cannot be captured in a graph.
  virtual bool needs_host() const = 0;
  // Throws Error if an operation in flight has failed. In a captured graph that can happen at any time.
  virtual void check() = 0;

  virtual std::string description() const = 0;   // "shared memory (2 ranks)"
  virtual std::size_t bucket_count() const = 0;  // number of slices in which a step's gradients are reduced
  virtual const ExchangeCost& cost() const = 0;
};

}  // namespace lockstep
