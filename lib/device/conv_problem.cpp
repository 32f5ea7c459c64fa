#include "device/conv_problem.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace lockstep {

std::string ConvProblem::text() const {
  constexpr std::array<std::string_view, 3> directions{"forward", "backward-data", "backward-weight"};
  return fmt::format("{} {}->{} kernel {} stride {} padding {} on {}x{}x{} {} {}{}",
                     directions[static_cast<std::size_t>(direction)], conv.in_channels, conv.out_channels,
                     conv.kernel.text(), conv.stride.text(), conv.padding.text(), n, h, w,
                     input == Layout::images ? "images" : "features", name_of(precision),
                     accumulate == Accumulate::add ? ", added" : "");
}

}  // namespace lockstep
