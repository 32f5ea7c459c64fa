// Checks values of a space file. Messages name the file and the line. A file with several mistakes is refused once,
// with all of them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text/number.hpp"
#include "slurm/submit/yaml.hpp"

namespace lockstep {

inline constexpr YamlKind space_files{"search files", "Nothing was started."};

class SpaceReader {
 public:
  explicit SpaceReader(std::string file) : file_(std::move(file)) {}

  const std::string& file() const { return file_; }

  // Throws Error(usage): "'space.yaml', line 12: MESSAGE. Nothing was started."
  [[noreturn]] void refuse(int line, std::string_view message) const;

  // The same, but later: throw_refusals() throws it.
  void add_refusal(int line, std::string_view message);
  // Calls `read`. If it throws Error(usage), keeps that for throw_refusals(), so that the rest of the file is checked.
  template <typename Read>
  void attempt(int line, Read read);
  // The sentences that were kept, in the order of their lines.
  std::vector<std::string> refusals() const;
  // If refusals were kept, prints all but the last, each on a line, and throws the last.
  void throw_refusals() const;

  // Refuses a value that is not a map. Keeps a refusal of each field that is not known. `owner` completes "the field
  // 'x' of ".
  void check_fields(const YamlValue& value, std::string_view owner, std::initializer_list<std::string_view> known);
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
  void keep(int line, const Error& error);

  struct Refusal {
    int line = 0;
    std::string text;  // without the outcome
  };

  std::string file_;
  std::vector<Refusal> refusals_;
};

template <typename Read>
void SpaceReader::attempt(int line, Read read) try {
  read();
} catch (const Error& error) {
  keep(line, error);
}

// The words of a text, without the blanks between them.
std::vector<std::string> words_in(const std::string& text);

// A string of the command line, as a value without a line. Throws Error(usage) if it is not UTF-8.
YamlValue stated_text(const std::string& text);

// The truth value of an unquoted "true" or "false".
std::optional<bool> truth_of(const YamlValue& value);

}  // namespace lockstep
