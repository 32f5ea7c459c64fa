#include "search/space/setting_text.hpp"

#include <fmt/format.h>

#include <optional>

#include "base/text/number.hpp"

namespace lockstep {

std::string setting_text(const std::vector<OptionWord>& settings, std::string_view option) {
  const std::string flag = fmt::format("--{}", option);
  for (const OptionWord& word : settings) {
    if (word == flag) return "on";
    if (word.starts_with(flag + "=")) return word.substr(flag.size() + 1);
  }
  return "off";
}

std::string short_setting_text(const std::vector<OptionWord>& settings, const Hyperparameter& parameter) {
  const std::string text = setting_text(settings, parameter.option);
  if (parameter.kind == Hyperparameter::Kind::listed) return text;
  const std::optional<double> number = parse_number<double>(text, {-1e300, 1e300});
  return number ? fmt::format("{:.4g}", *number) : text;
}

}  // namespace lockstep
