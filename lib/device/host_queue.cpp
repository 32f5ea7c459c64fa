// The queue of a device without one: everything runs immediately.
#include <algorithm>
#include <cassert>
#include <vector>

#include "device/captured_graph.hpp"
#include "device/readback.hpp"

namespace lockstep {
namespace {

class UncapturedGraph final : public CapturedGraph {
 public:
  void run(const std::function<void()>& work) override { work(); }
};

class HostReadback final : public Readback {
 public:
  explicit HostReadback(std::int64_t count) : values_(static_cast<std::size_t>(count)) {}

  void start(const Tensor& values) override {
    assert(values.shape().count() == static_cast<std::int64_t>(values_.size()));
    std::copy_n(values.as<float>(), values_.size(), values_.begin());
  }
  bool has_arrived() const override { return true; }
  std::span<const float> values() const override { return values_; }

 private:
  std::vector<float> values_;
};

}  // namespace

std::unique_ptr<CapturedGraph> make_uncaptured_graph() { return std::make_unique<UncapturedGraph>(); }

std::unique_ptr<Readback> make_host_readback(std::int64_t count) { return std::make_unique<HostReadback>(count); }

}  // namespace lockstep
