// A setting of a trial, for readers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "search/space/hyperparameter.hpp"

namespace lockstep {

// The value that settings give to an option: "0.1", "on" for a flag, "off" if it is left out.
std::string setting_text(const std::vector<OptionWord>& settings, std::string_view option);

// The value of a hyperparameter, with four digits of a number.
std::string short_setting_text(const std::vector<OptionWord>& settings, const Hyperparameter& parameter);

}  // namespace lockstep
