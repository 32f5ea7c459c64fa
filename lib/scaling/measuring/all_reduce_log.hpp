// A backend that logs when its all-reduces and reduce-scatters begin. Otherwise it behaves as the inner backend.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"

namespace lockstep {

struct AllReduceLog {
  struct Begin {
    std::int64_t bytes;
    std::chrono::steady_clock::time_point at;
  };
  std::vector<Begin> begins;      // since the log was last cleared
  AllReducer* reducer = nullptr;  // the most recent one
  Tensor values;                  // its first allocation: the gradients
};

// `log` must outlive the backend and its reducers.
std::unique_ptr<Backend> with_all_reduce_log(std::unique_ptr<Backend> inner, AllReduceLog& log);

}  // namespace lockstep
