// Progress of a long task: a progress bar with rate and time left on a terminal, a line every few seconds in a log
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

// Thread-safe. Prints on rank 0 only.
class Progress {
 public:
  Progress(std::string task, std::int64_t total, std::string unit);
  void add(std::int64_t done);
  void finish();  // prints the final state and keeps it on the screen

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
