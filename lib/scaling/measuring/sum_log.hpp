// A backend whose sums write down when they begin. They are the inner backend's, and nothing else changes.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"

namespace lockstep {

struct SumLog {
  struct Begin {
    std::int64_t bytes;
    std::chrono::steady_clock::time_point at;
  };
  std::vector<Begin> begins;      // since it was last emptied
  AllReducer* reducer = nullptr;  // that was made last
  Tensor values;                  // all that it sums
};

// `log` outlives it, and its reducers.
std::unique_ptr<Backend> with_sum_log(std::unique_ptr<Backend> inner, SumLog& log);

}  // namespace lockstep
