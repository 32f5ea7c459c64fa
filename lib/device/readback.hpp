// A few values copied from device memory to the host, which reads them later.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "device/tensor.hpp"

namespace lockstep {

class Readback {
 public:
  virtual ~Readback() = default;

  // Stream-ordered. `values` is plain fp32, of the size given at construction.
  virtual void start(const Tensor& values) = 0;
  // Whether the values of the last start() have arrived.
  virtual bool has_arrived() const = 0;
  // Waits for them. Valid until the next start().
  virtual std::span<const float> values() const = 0;
};

// For tensors in host memory: copies immediately.
std::unique_ptr<Readback> make_host_readback(std::int64_t count);

}  // namespace lockstep
