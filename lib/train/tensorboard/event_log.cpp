#include "train/tensorboard/event_log.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/error.hpp"
#include "base/io/append.hpp"
#include "base/io/file.hpp"
#include "base/io/partial_file.hpp"
#include "base/log.hpp"
#include "base/system_failure.hpp"
#include "base/text/number.hpp"

namespace lockstep {
namespace {

constexpr int max_attempts = 100;

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

constexpr std::string_view file_start = "events.out.tfevents.";

std::string owner_ending(const std::string& owner) { return owner.empty() ? "" : "." + owner; }

// TensorBoard reads files in the order of their names, so the time comes first. It is later than those of all other
// files, even if this clock is behind that of an earlier attempt.
double time_of_name(const std::filesystem::path& folder, double now) {
  constexpr std::size_t digits = 10;
  constexpr NumberRange<std::int64_t> times{0, 9'999'999'998};
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(folder, absent)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(file_start)) continue;
    const std::optional<std::int64_t> time = parse_number(name.substr(file_start.size(), digits), times);
    if (time) now = std::max(now, static_cast<double>(*time + 1));
  }
  return now;
}

std::string file_name(double time, int attempt, const std::string& owner) {
  std::string host;
  for (const char c : log::host()) {
    const bool is_plain =
        (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '.';
    host += is_plain ? c : '_';
  }
  return fmt::format("{}{:010.0f}.{}.{}.{}{}", file_start, std::floor(time), host.substr(0, 100), ::getpid(), attempt,
                     owner_ending(owner));
}

// A field of the object and its tag, which may contain the kind.
struct Drawn {
  const char* field;
  const char* tag;
};
constexpr std::array<Drawn, 6> by_kind{{{"loss", "loss/{}"},
                                        {"accuracy", "accuracy/{}"},
                                        {"top5", "top5/{}"},
                                        {"ema_loss", "loss/{}_of_mean_weights"},
                                        {"ema_accuracy", "accuracy/{}_of_mean_weights"},
                                        {"ema_top5", "top5/{}_of_mean_weights"}}};
constexpr std::array<Drawn, 5> of_training{{{"learning_rate", "learning_rate"},
                                            {"samples_per_second", "samples_per_second"},
                                            {"loader_waited_ms", "loader_waited_ms"},
                                            {"gradient_norm", "gradient_norm"},
                                            {"image_size", "image_size"}}};

}  // namespace

std::vector<Scalar> scalars_of(const nlohmann::json& metrics) {
  const std::string kind = metrics.at("kind");
  std::vector<Scalar> scalars;
  const auto add = [&](const char* field, std::string tag) {
    const auto found = metrics.find(field);
    if (found != metrics.end() && found->is_number()) scalars.push_back({std::move(tag), found->get<float>()});
  };
  if (kind == "skipped") add("loss_scale", "loss_scale");
  if (kind != "training" && kind != "test" && kind != "validation") return scalars;
  for (const Drawn& drawn : by_kind) add(drawn.field, fmt::format(fmt::runtime(drawn.tag), kind));
  for (const Drawn& drawn : of_training) add(drawn.field, drawn.tag);
  return scalars;
}

void EventLog::require_own_folder() const {
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, absent)) {
    const std::string name = entry.path().filename();
    const bool is_own = !owner_.empty() && name.ends_with(owner_ending(owner_));
    require(is_own || !name.starts_with(file_start), Failure::usage,
            "'{}' (--tensorboard) holds events of another training. TensorBoard would show both as one and drop the "
            "earlier events. Choose a separate folder for each training, below the folder of tensorboard --logdir.",
            folder_.string());
  }
}

void EventLog::begin(std::int64_t steps) {
  const double time = seconds_since_1970();
  try {
    open_new(time);
  } catch (const Error& error) {
    if (error.failure() == Failure::usage) throw;
  }
  left_ = tf_record(restart_event({time, steps == 0 ? 0 : steps + 1}));
  for (const EventText& text : texts_) left_ += tf_record(text_event({time, steps}, text.tag, text.text));
  flush();
}

// Each file begins with its version.
void EventLog::open_new(double time) {
  const auto refused = [&](int error) {
    return system_failure(fmt::format("cannot write to '{}'", folder_.string()), error, Access::writing,
                          "--tensorboard");
  };
  file_.reset();
  std::error_code made;
  std::filesystem::create_directories(folder_, made);
  if (made) throw refused(made.value());
  const double named = time_of_name(folder_, time);
  for (int attempt = 0; file_ == nullptr; ++attempt) {
    path_ = folder_ / file_name(named, attempt, owner_);
    auto file = std::make_unique<Descriptor>(create_new_file(path_.c_str()));
    if (*file < 0 && errno == EEXIST && attempt < max_attempts) continue;
    if (*file < 0) throw refused(errno);
    if (!append_whole(*file, tf_record(version_event(time)))) {
      const int error = errno;
      ::unlink(path_.c_str());
      throw refused(error);
    }
    file_ = std::move(file);
  }
}

// A file that was removed still exists while it is open, but nobody sees it.
bool EventLog::is_there() const {
  struct stat ours {};
  return file_ != nullptr && ::fstat(*file_, &ours) == 0 && ours.st_nlink > 0;
}

void EventLog::append(const nlohmann::json& metrics) {
  const std::vector<Scalar> scalars = scalars_of(metrics);
  if (scalars.empty()) return;
  left_ += tf_record(scalars_event({seconds_since_1970(), metrics.at("step")}, scalars));
  flush();
}

bool EventLog::flush() {
  std::string reason;
  try {
    if (!is_there()) open_new(seconds_since_1970());
    if (append_whole(*file_, left_)) {
      left_.clear();
    } else {
      reason = fmt::format("cannot write '{}': {}.", path_.string(), system_error_message(errno));
    }
  } catch (const Error& error) {
    reason = error.what();
  }
  if (!reason.empty() && !std::exchange(has_warned_, true)) {
    log::warning("{} The training continues. TensorBoard events are kept in memory until they can be written.", reason);
  }
  if (reason.empty() && std::exchange(has_warned_, false)) log::info("'{}' is complete again", path_.string());
  return reason.empty();
}

}  // namespace lockstep
