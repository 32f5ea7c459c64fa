#include "base/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/text/grouped.hpp"

namespace lockstep {
namespace {

constexpr double log_interval_seconds = 10;

}  // namespace

std::string describe_progress(std::string_view task, std::int64_t done, std::int64_t total, std::string_view unit,
                              double seconds) {
  constexpr int width = 14;  // the whole line fits 80 columns
  const double fraction = total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0) : 1;
  const int filled = static_cast<int>(fraction * width);
  std::string bar(static_cast<std::size_t>(filled), '=');
  if (filled < width) bar += '>';
  bar.resize(width, ' ');

  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::string text = fmt::format("{}  [{}] {:3}%  {}/{} {}", task, bar, static_cast<int>(fraction * 100), grouped(done),
                                 grouped(total), unit);
  if (rate >= 1) text += fmt::format("  {}/s", grouped(static_cast<std::int64_t>(rate)));
  if (done >= total) return text + fmt::format("  {} in total", format_duration(seconds));
  if (rate > 0) text += fmt::format("  {} left", format_duration(static_cast<double>(total - done) / rate));
  return text;
}

Progress::Progress(std::string task, std::int64_t total, std::string unit)
    : task_(std::move(task)), total_(total), unit_(std::move(unit)) {}

std::string Progress::text() const { return describe_progress(task_, done_, total_, unit_, watch_.seconds()); }

void Progress::add(std::int64_t done) {
  done_ += done;
  if (log::is_terminal()) return log::progress(text());

  const std::lock_guard lock(mutex_);
  if (watch_.seconds() < reported_seconds_ + log_interval_seconds) return;
  reported_seconds_ = watch_.seconds();
  log::info(text());
}

void Progress::finish() {
  if (!log::is_terminal()) return log::info(text());
  log::progress(text());
  log::end_progress();
}

}  // namespace lockstep
