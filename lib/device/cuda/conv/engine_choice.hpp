// Identifies one way to compute an operation graph: a cuDNN engine and the values of its knobs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cuda {

struct EngineChoice {
  struct Knob {
    std::int64_t type;
    std::int64_t value;
    bool operator==(const Knob&) const = default;
  };
  std::int64_t engine = 0;
  std::vector<Knob> knobs;

  // For plans shared between ranks and runs: "engine 31 knobs 2:1 5:3", or "engine 0" without knobs.
  std::string text() const;
  // Empty unless `text` has that form, with numbers from 0 (knob values may be negative) and at most 64 knobs.
  static std::optional<EngineChoice> parse(std::string_view text);

  bool operator==(const EngineChoice&) const = default;
};

}  // namespace lockstep::cuda
