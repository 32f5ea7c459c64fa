#include "device/cuda/conv/engine_choice.hpp"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace lockstep::cuda {
namespace {

constexpr std::size_t max_knobs = 64;
constexpr std::int64_t knob_types = 1024;  // cuDNN has about forty

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

bool take(std::string_view& text, std::int64_t& number) {
  // careful-number: a kernel plan: takes one number after another off the front
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

std::string EngineChoice::text() const {
  std::string text = fmt::format("engine {}", engine);
  if (!knobs.empty()) text += " knobs";
  for (const Knob& knob : knobs) text += fmt::format(" {}:{}", knob.type, knob.value);
  return text;
}

std::optional<EngineChoice> EngineChoice::parse(std::string_view text) {
  EngineChoice choice;
  if (!take(text, "engine ") || !take(text, choice.engine) || choice.engine < 0) return std::nullopt;
  if (text.empty()) return choice;
  if (!take(text, " knobs")) return std::nullopt;
  while (!text.empty()) {
    Knob knob{};
    const bool whole = take(text, " ") && take(text, knob.type) && take(text, ":") && take(text, knob.value);
    const bool known = knob.type >= 0 && knob.type < knob_types;
    if (!whole || !known || choice.knobs.size() == max_knobs) return std::nullopt;
    choice.knobs.push_back(knob);
  }
  if (choice.knobs.empty()) return std::nullopt;
  return choice;
}

}  // namespace lockstep::cuda
