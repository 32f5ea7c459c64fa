#include "recipe/checkpoint_options.hpp"

#include <fmt/format.h>

#include "base/text/number.hpp"

namespace lockstep {

namespace {

// Parses the number before a unit, in singular (`one`) or plural (`many`).
std::optional<std::int64_t> count_before(std::string_view text, std::string_view one, std::string_view many) {
  if (text.ends_with(many)) {
    text.remove_suffix(many.size());
  } else if (text.ends_with(one)) {
    text.remove_suffix(one.size());
  }
  return parse_number(text, NumberRange<std::int64_t>{1, std::int64_t{1} << 40});
}

// Parses one element of a comma-separated interval. Each unit may occur once.
bool add_word(std::string_view word, CheckpointInterval& interval) {
  if (word.find("epoch") != std::string_view::npos) {
    if (interval.epochs > 0) return false;
    const std::optional<std::int64_t> epochs = count_before(word, "epoch", "epochs");
    interval.epochs = epochs.value_or(0);
    return epochs.has_value();
  }
  if (const std::optional<double> seconds = parse_duration(word)) {
    if (interval.seconds > 0) return false;
    interval.seconds = *seconds;
    return true;
  }
  if (interval.steps > 0) return false;
  const std::optional<std::int64_t> steps = count_before(word, "step", "steps");
  interval.steps = steps.value_or(0);
  return steps.has_value();
}

}  // namespace

std::optional<CheckpointInterval> parse_checkpoint_interval(std::string_view text) {
  CheckpointInterval interval{.steps = 0, .epochs = 0, .seconds = 0};
  while (true) {
    const std::size_t comma = text.find(',');
    if (!add_word(text.substr(0, comma), interval)) return std::nullopt;
    if (comma == std::string_view::npos) return interval;
    text.remove_prefix(comma + 1);
  }
}

std::string checkpoint_interval_text(const CheckpointInterval& interval) {
  std::string text;
  const auto add = [&text](const std::string& word) { text += (text.empty() ? "" : ",") + word; };
  if (interval.steps > 0) add(fmt::format("{}", interval.steps));
  if (interval.epochs > 0) add(fmt::format("{}epoch{}", interval.epochs, interval.epochs == 1 ? "" : "s"));
  if (interval.seconds >= 60) add(fmt::format("{:g}min", interval.seconds / 60));
  if (interval.seconds > 0 && interval.seconds < 60) add(fmt::format("{:g}s", interval.seconds));
  return text;
}

bool CheckpointClock::is_due(std::int64_t step) const {
  if (step == last_step_) return false;
  if (interval_.steps > 0 && step - last_step_ >= interval_.steps) return true;
  const std::int64_t steps_of_epochs = interval_.epochs * steps_per_epoch_;
  if (steps_of_epochs > 0 && step / steps_of_epochs > last_step_ / steps_of_epochs) return true;
  return interval_.seconds > 0 && watch_.seconds() >= interval_.seconds;
}

void CheckpointClock::note_written(std::int64_t step) {
  last_step_ = step;
  watch_ = Stopwatch();
}

}  // namespace lockstep
