// How far a long task is, for people: a live bar with rate and time left on a terminal, a line now and then in a log
// file.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace lockstep {

// "train  [=======>      ]  57%  28,500/50,000 samples  81,000/s  0:01 left". `total` may be 0.
std::string describe_progress(std::string_view task, std::int64_t done, std::int64_t total, std::string_view unit,
                              double seconds);

// Safe from any thread. Only rank 0's is seen.
class Progress {
 public:
  Progress(std::string task, std::int64_t total, std::string unit);
  void add(std::int64_t done);
  void finish();  // shows the end and leaves it standing

 private:
  std::string text() const;

  std::string task_;
  std::int64_t total_;
  std::string unit_;
  Stopwatch watch_;
  std::atomic<std::int64_t> done_ = 0;
  std::mutex mutex_;
  double reported_seconds_ = 0;
};

}  // namespace lockstep
