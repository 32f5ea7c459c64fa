#include "search/hparams/hparams_event.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text/number.hpp"
#include "search/space/setting_text.hpp"
#include "train/tensorboard/protobuf.hpp"

namespace lockstep {
namespace {

// Field numbers.
namespace event {
constexpr std::uint32_t step = 2, file_version = 3, summary = 5;
}
namespace summary_value {
constexpr std::uint32_t value = 1, tag = 1, simple_value = 2, tensor = 8, metadata = 9;
}
namespace plugin_data {
constexpr std::uint32_t of_metadata = 1, name = 1, content = 2;
}
namespace hparams {
constexpr std::uint32_t experiment = 2, session_start = 3, session_end = 4;
}
namespace experiment {
constexpr std::uint32_t description = 1, hparam = 4, metric = 5, name = 6;
}
namespace hparam_info {
constexpr std::uint32_t name = 1, type = 4, discrete = 5, interval = 6;
constexpr std::uint64_t text = 1, number = 3;
}  // namespace hparam_info
namespace any_value {  // google.protobuf.Value
constexpr std::uint32_t number = 2, text = 3;
}

// An empty tensor: newer readers skip values without one.
std::string null_tensor() {
  constexpr std::uint32_t dtype = 1, shape = 2, float_value = 5, dimension = 2, size = 1;
  constexpr std::uint64_t float_type = 1;
  return number_field(dtype, float_type) + bytes_field(shape, bytes_field(dimension, number_field(size, 1))) +
         float_field(float_value, 0);
}

std::string hparams_event(std::string_view tag, std::uint32_t field, std::string_view message) {
  const std::string data =
      bytes_field(plugin_data::name, "hparams") + bytes_field(plugin_data::content, bytes_field(field, message));
  const std::string value = bytes_field(summary_value::tag, tag) + bytes_field(summary_value::tensor, null_tensor()) +
                            bytes_field(summary_value::metadata, bytes_field(plugin_data::of_metadata, data));
  return bytes_field(event::summary, bytes_field(summary_value::value, value));
}

bool is_number(const Hyperparameter& parameter) { return parameter.kind != Hyperparameter::Kind::listed; }

std::string range_of(const Hyperparameter& parameter) {
  if (!is_number(parameter)) {
    std::string values;
    for (const OptionWord& word : parameter.words) {
      values += bytes_field(1, bytes_field(any_value::text, setting_text({word}, parameter.option)));
    }
    return bytes_field(hparam_info::discrete, values);
  }
  const bool is_log = parameter.kind == Hyperparameter::Kind::logarithmic;
  const double first = is_log ? std::pow(parameter.base, parameter.least) : parameter.least;
  const double last = is_log ? std::pow(parameter.base, parameter.most) : parameter.most;
  return bytes_field(hparam_info::interval,
                     double_field(1, std::min(first, last)) + double_field(2, std::max(first, last)));
}

}  // namespace

std::string event_file_version() { return bytes_field(event::file_version, "brain.Event:2"); }

std::string experiment_event(const Space& space, const std::filesystem::path& output) {
  std::string message = bytes_field(experiment::description, fmt::format("search in '{}'", output.string()));
  for (const Hyperparameter& parameter : space.hyperparameters) {
    message += bytes_field(
        experiment::hparam,
        bytes_field(hparam_info::name, parameter.option) +
            number_field(hparam_info::type, is_number(parameter) ? hparam_info::number : hparam_info::text) +
            range_of(parameter));
  }
  constexpr std::uint32_t metric_name_field = 1, tag = 2;
  message +=
      bytes_field(experiment::metric, bytes_field(metric_name_field, bytes_field(tag, metric_name(space.metric))));
  message += bytes_field(experiment::name, space.program);
  return hparams_event("_hparams_/experiment", hparams::experiment, message);
}

std::string session_start_event(const Space& space, const std::vector<OptionWord>& settings) {
  std::string message;
  for (const Hyperparameter& parameter : space.hyperparameters) {
    const std::string text = setting_text(settings, parameter.option);
    const std::optional<double> number =
        is_number(parameter) ? parse_number<double>(text, {-1e300, 1e300}) : std::nullopt;
    const std::string value = number ? double_field(any_value::number, *number) : bytes_field(any_value::text, text);
    message += bytes_field(1, bytes_field(1, parameter.option) + bytes_field(2, value));
  }
  return hparams_event("_hparams_/session_start_info", hparams::session_start, message);
}

std::string session_end_event(SessionStatus status) {
  return hparams_event("_hparams_/session_end_info", hparams::session_end,
                       number_field(1, static_cast<std::uint64_t>(status)));
}

std::string metric_event(std::string_view tag, std::int64_t step, double value) {
  return number_field(event::step, static_cast<std::uint64_t>(step)) +
         bytes_field(event::summary, bytes_field(summary_value::value, bytes_field(summary_value::tag, tag) +
                                                                           float_field(summary_value::simple_value,
                                                                                       static_cast<float>(value))));
}

}  // namespace lockstep
