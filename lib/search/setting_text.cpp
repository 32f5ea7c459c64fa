#include "search/setting_text.hpp"

#include <fmt/format.h>

namespace lockstep {

std::string setting_text(const std::vector<OptionWord>& settings, std::string_view option) {
  const std::string flag = fmt::format("--{}", option);
  for (const OptionWord& word : settings) {
    if (word == flag) return "on";
    if (word.starts_with(flag + "=")) return word.substr(flag.size() + 1);
  }
  return "off";
}

}  // namespace lockstep
