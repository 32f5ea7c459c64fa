#include "slurm/submit/shell_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/printable.hpp"

namespace lockstep {
namespace {

bool is_one_of(char letter, std::string_view letters) { return letters.find(letter) != std::string_view::npos; }

constexpr std::string_view letters_and_underscore = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

std::string in_single_quotes(std::string_view text) {
  std::string word = "'";
  for (const char letter : text) word += letter == '\'' ? R"('\'')" : std::string(1, letter);
  return word + "'";
}

}  // namespace

std::string shell_word(std::string_view text) {
  if (printable_lines(text) == text) return in_single_quotes(text);
  std::string word = "$'";
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < 0x20 || code >= 0x7f) {
      word += fmt::format("\\x{:02x}", code);
    } else {
      if (letter == '\'' || letter == '\\') word += '\\';
      word += letter;
    }
  }
  return word + "'";
}

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

bool is_name_letter(char letter) { return is_one_of(letter, letters_and_underscore) || is_digit(letter); }

bool is_plain_word(std::string_view text) {
  const auto is_plain = [](char letter) { return is_name_letter(letter) || is_one_of(letter, "./:@+-"); };
  return !text.empty() && std::ranges::all_of(text, is_plain);
}

bool is_plain_text(std::string_view text) {
  return std::ranges::all_of(text,
                             [](char letter) { return is_name_letter(letter) || is_one_of(letter, "./:@+-=,%~^ \t"); });
}

bool names_variable(std::string_view script, std::string_view variable) {
  for (std::size_t at = script.find(variable); at != script.npos; at = script.find(variable, at + 1)) {
    const std::size_t end = at + variable.size();
    const bool begins = at == 0 || !is_name_letter(script[at - 1]);
    if (begins && (end == script.size() || !is_name_letter(script[end]))) return true;
  }
  return false;
}

}  // namespace lockstep
