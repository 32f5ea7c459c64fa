// How the gradients that each rank computes in a step become everyone's.
//
// A step tells an exchange which micro-batch it begins, hands it each gradient as backward completes it, and has it
// finish: all of the model's flat gradient buffer is then summed over micro-batches and ranks, on every rank alike.
// What travels when, in what pieces and in what form, is the exchange's.
#pragma once

#include <cstddef>
#include <string>

#include "nn/layer.hpp"

namespace lockstep {

// What exchanging has cost this rank's host thread so far.
struct ExchangeCost {
  double within_backward_ms = 0;  // where the host works while backward is under way
  double after_backward_ms = 0;   // waiting in finish(): not hidden
};

class Exchange : public GradientSink {
 public:
  // From now on the gradients of this rank that are not finite are counted, in the metric slots's overflow slot, before
  // they are summed: so every rank learns of any rank's overflow.
  virtual void count_overflow() = 0;

  // Call before each micro-batch of a step, in order; ready() of the last micro-batch lets gradients go.
  virtual void begin_micro_batch(int micro_batch, int micro_batches) = 0;
  // Collective, stream-ordered. Call once after the last micro-batch's backward. Where the host is needed, everything
  // is started here, so that what comes before can be recorded.
  virtual void finish() = 0;
  // Whether finish() needs the host for a device that has a queue of its own: it cannot then be recorded.
  virtual bool needs_host() const = 0;
  // Throws Error if something under way has failed since, as in a captured step it may at any time.
  virtual void check() = 0;

  virtual std::string description() const = 0;   // "shared memory (2 ranks)"
  virtual std::size_t bucket_count() const = 0;  // pieces in which the gradients of a step travel
  virtual const ExchangeCost& cost() const = 0;
};

}  // namespace lockstep
