// A loader of a slow rank.
#pragma once

#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "dataset/loading/loader.hpp"

namespace lockstep {

// Takes a while for each micro-batch.
class SlowLoader final : public Loader {
 public:
  SlowLoader(std::unique_ptr<Loader> inner, std::chrono::milliseconds pause)
      : inner_(std::move(inner)), pause_(pause) {}
  void request(std::int64_t micro_batch) override { inner_->request(micro_batch); }
  const Batch& next() override {
    std::this_thread::sleep_for(pause_);
    return inner_->next();
  }
  double waited_ms() const override { return 0; }

 private:
  std::unique_ptr<Loader> inner_;
  std::chrono::milliseconds pause_;
};

}  // namespace lockstep
