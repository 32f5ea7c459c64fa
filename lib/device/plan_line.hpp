// A line of a plan, "problem = kernel": the kernel chosen for one convolution.
#pragma once

#include <optional>
#include <string_view>

namespace lockstep {

struct PlanLine {
  std::string_view problem;  // ConvProblem::text()
  std::string_view kernel;   // in the device's notation
};

// Views into `line`. Empty if it has another form.
inline std::optional<PlanLine> split_plan_line(std::string_view line) {
  constexpr std::string_view separator = " = ";
  const std::size_t middle = line.find(separator);
  if (middle == std::string_view::npos || middle == 0 || middle + separator.size() == line.size()) return std::nullopt;
  return PlanLine{line.substr(0, middle), line.substr(middle + separator.size())};
}

}  // namespace lockstep
