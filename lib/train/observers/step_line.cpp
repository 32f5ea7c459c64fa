#include "train/observers/step_line.hpp"

#include <fmt/format.h>

#include "base/clock.hpp"

namespace lockstep {

namespace {

std::string describe_place(const StepFigures& figures) {
  return fmt::format("epoch {}/{}  step {}/{}  loss {:.4f}", figures.epoch, figures.epochs, figures.step, figures.steps,
                     figures.loss);
}

}  // namespace

std::string log_line(const StepFigures& figures) {
  return fmt::format("{}  accuracy {:.1f} %  {:.0f} samples/s  {} left  learning rate {:.4g}", describe_place(figures),
                     100 * figures.accuracy, figures.samples_per_second, format_duration(figures.seconds_left),
                     figures.learning_rate);
}

std::string live_line(const StepFigures& figures, std::size_t columns) {
  const std::string place = describe_place(figures);
  const std::string left = format_duration(figures.seconds_left);
  const double percent = 100 * figures.accuracy;
  const double rate = figures.samples_per_second;
  for (const std::string& line :
       {log_line(figures), fmt::format("{}  accuracy {:.1f} %  {:.0f} samples/s  {} left", place, percent, rate, left),
        fmt::format("{}  accuracy {:.1f} %  {:.0f}/s  {} left", place, percent, rate, left)}) {
    if (line.size() <= columns) return line;
  }
  return fmt::format("{}  {:.1f} %  {:.0f}/s  {} left", place, percent, rate, left);
}

}  // namespace lockstep
