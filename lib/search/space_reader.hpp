// Checks values of a space file. Messages name the file and the line.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/number.hpp"
#include "slurm/submit/yaml.hpp"

namespace lockstep {

inline constexpr YamlKind space_files{"search files", "Nothing was started."};

class SpaceReader {
 public:
  explicit SpaceReader(std::string file) : file_(std::move(file)) {}

  // Throws Error(usage): "'space.yaml', line 12: MESSAGE. Nothing was started."
  [[noreturn]] void refuse(int line, std::string_view message) const;

  // Refuses a value that is not a map, and fields that are not known. `owner` completes "the field 'x' of ".
  void check_fields(const YamlValue& value, std::string_view owner,
                    std::initializer_list<std::string_view> known) const;
  // Refuses a missing field.
  const YamlValue& get(const YamlValue& map, std::string_view field, std::string_view owner) const;

  const std::string& text(const YamlValue& value, std::string_view field) const;
  template <typename Number>
  Number number(const YamlValue& value, std::string_view field, const NumberRange<Number>& range) const;
  // `otherwise` if the field is missing.
  template <typename Number>
  Number number_or(const YamlValue& map, std::string_view field, const NumberRange<Number>& range,
                   Number otherwise) const;
  // True or false, unquoted. Nothing if the field is missing.
  std::optional<bool> truth(const YamlValue& map, std::string_view field) const;

 private:
  std::string file_;
};

// The truth value of an unquoted "true" or "false".
std::optional<bool> truth_of(const YamlValue& value);

}  // namespace lockstep
