// Text about steps: a log line, and the progress line on a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep {

struct StepFigures {
  std::int64_t epoch = 0;  // counted from 1
  std::int64_t epochs = 0;
  std::int64_t step = 0;  // steps done
  std::int64_t steps = 0;
  double loss = 0;
  double accuracy = 0;
  double samples_per_second = 0;
  double seconds_left = 0;
  double learning_rate = 0;
};

// "epoch 2/10  step 780/3900  loss 0.9114  accuracy 67.3 %  775 samples/s  6:44 left  learning rate 0.174"
std::string log_line(const StepFigures& figures);

// The same, shortened to fit into `columns`: the learning rate is dropped first, then words that can be guessed. With
// numbers of usual size it fits into 79 columns.
std::string live_line(const StepFigures& figures, std::size_t columns);

}  // namespace lockstep
