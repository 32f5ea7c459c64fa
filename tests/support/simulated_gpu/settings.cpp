#include "support/simulated_gpu/settings.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace lockstep::simulated {
namespace {

constexpr std::array orders{std::pair{"direct", Order::direct}, std::pair{"late", Order::late},
                            std::pair{"early", Order::early}, std::pair{"random", Order::random}};
constexpr std::array faults{std::pair{"none", Fault::none},
                            std::pair{"missing_wait", Fault::missing_wait},
                            std::pair{"early_event", Fault::early_event},
                            std::pair{"offset_memory", Fault::offset_memory},
                            std::pair{"freed_under_graph", Fault::freed_under_graph},
                            std::pair{"short_pinned", Fault::short_pinned},
                            std::pair{"wrong_stride", Fault::wrong_stride},
                            std::pair{"unset_memory", Fault::unset_memory},
                            std::pair{"kept_graph", Fault::kept_graph},
                            std::pair{"detached_sum", Fault::detached_sum},
                            std::pair{"left_out_sum", Fault::left_out_sum}};

template <typename Names>
auto value_of(std::string_view name, const Names& names, const char* variable) {
  for (const auto& [known, value] : names) {
    if (name == known) return value;
  }
  std::fprintf(stderr, "The simulated GPU does not know '%s' (%s).\n", std::string(name).c_str(), variable);
  std::abort();
}

std::string_view text_of(const char* variable, const char* otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : text;
}

}  // namespace

Settings settings_of_environment() {
  Settings settings;
  std::string_view order = text_of("LOCKSTEP_GPU_ORDER", "direct");
  if (const std::size_t colon = order.find(':'); colon != std::string_view::npos) {
    settings.seed = std::strtoull(order.data() + colon + 1, nullptr, 10);
    order = order.substr(0, colon);
  }
  settings.order = value_of(order, orders, "LOCKSTEP_GPU_ORDER");
  settings.fault = value_of(text_of("LOCKSTEP_GPU_FAULT", "none"), faults, "LOCKSTEP_GPU_FAULT");
  settings.notes_traffic = std::getenv("LOCKSTEP_GPU_TRAFFIC") != nullptr;
  return settings;
}

}  // namespace lockstep::simulated
