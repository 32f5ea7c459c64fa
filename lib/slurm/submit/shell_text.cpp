#include "slurm/submit/shell_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/printable.hpp"

namespace lockstep {
namespace {

bool is_one_of(char letter, std::string_view letters) { return letters.find(letter) != std::string_view::npos; }

constexpr std::string_view letters_and_underscore = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
constexpr std::string_view digits = "0123456789";

bool is_name_letter(char letter) { return is_one_of(letter, letters_and_underscore) || is_one_of(letter, digits); }

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

bool is_plain_word(std::string_view text) {
  const auto is_plain = [](char letter) { return is_name_letter(letter) || is_one_of(letter, "./:@+-"); };
  return !text.empty() && std::ranges::all_of(text, is_plain);
}

bool is_variable_name(std::string_view text) {
  return !text.empty() && !is_one_of(text.front(), digits) && std::ranges::all_of(text, is_name_letter);
}

bool names_variable(std::string_view script, std::string_view variable) {
  for (std::size_t at = script.find(variable); at != script.npos; at = script.find(variable, at + 1)) {
    const std::size_t end = at + variable.size();
    const bool begins = at == 0 || !is_name_letter(script[at - 1]);
    if (begins && (end == script.size() || !is_name_letter(script[end]))) return true;
  }
  return false;
}

void ShellReader::read(std::string_view script) {
  for (const char letter : script) {
    const bool was_escaped = is_escaped_;
    const Place before = state_;
    switch (state_) {
      case Place::plain:
        read_plain(letter);
        break;
      case Place::single_quotes:
        if (letter == '\'') state_ = Place::plain;
        break;
      case Place::double_quotes:
        read_double_quotes(letter);
        break;
      case Place::comment:
        if (letter == '\n') state_ = Place::plain;
        break;
      case Place::unclear:
        return;
    }
    const bool is_in_quotes = before == Place::single_quotes || before == Place::double_quotes;
    if (state_ != Place::comment) follow_command(letter, is_in_quotes || was_escaped || is_in_braces_);
    note(letter, was_escaped);
  }
}

void ShellReader::follow_command(char letter, bool is_quoted) {
  if (std::exchange(ends_command_, false) && letter != '>') command_.end_command();
  const bool is_redirection = letter == '&' && is_one_of(before_, "<>");
  if (is_quoted || !is_one_of(letter, " \t\n;&|()<>") || is_redirection) return command_.add(letter);
  command_.end_word();
  if (letter == '&') {
    ends_command_ = true;
  } else if (is_one_of(letter, "\n;|()")) {
    command_.end_command();
  }
}

// Bash removes a backslash and the newline after it, as if neither existed.
void ShellReader::note(char letter, bool was_escaped) {
  const bool goes_on = is_escaped_ || (was_escaped && letter == '\n');
  if (!goes_on) begins_word_ = state_ == Place::plain && !was_escaped && is_one_of(letter, " \t\n;&|()<>");
  before_ = letter;
}

void ShellReader::read_name_in_braces(char letter) {
  if (letter == '}') {
    is_in_braces_ = false;
  } else if (!is_name_letter(letter)) {
    state_ = Place::unclear;
  }
}

void ShellReader::read_plain(char letter) {
  if (is_escaped_) {
    is_escaped_ = false;
    return;
  }
  if (is_in_braces_) return read_name_in_braces(letter);
  const bool opens_inner = letter == '`' || (before_ == '$' && is_one_of(letter, "('\"[")) ||
                           (before_ == '(' && letter == '(') || (before_ == '<' && letter == '<') ||
                           (is_name_letter(before_) && letter == '[');
  if (opens_inner) {
    state_ = Place::unclear;
  } else if (letter == '{' && before_ == '$') {
    is_in_braces_ = true;
  } else if (letter == '\\') {
    is_escaped_ = true;
  } else if (letter == '\'') {
    state_ = Place::single_quotes;
  } else if (letter == '"') {
    state_ = Place::double_quotes;
  } else if (letter == '#' && begins_word_) {
    state_ = Place::comment;
  }
}

void ShellReader::read_double_quotes(char letter) {
  if (is_escaped_) {
    is_escaped_ = false;
    return;
  }
  if (is_in_braces_) return read_name_in_braces(letter);
  if (letter == '`' || (before_ == '$' && is_one_of(letter, "(["))) {
    state_ = Place::unclear;
  } else if (letter == '{' && before_ == '$') {
    is_in_braces_ = true;
  } else if (letter == '\\') {
    is_escaped_ = true;
  } else if (letter == '"') {
    state_ = Place::plain;
  }
}

ShellReader::Place ShellReader::place() const {
  const bool is_in_subscript = command_.word().starts_with('[');  // a=([x]=1)
  const bool is_within =
      is_escaped_ || is_in_braces_ || is_in_subscript || (before_ == '$' && state_ != Place::single_quotes);
  return is_within && state_ != Place::comment ? Place::unclear : state_;
}

// `word` is already quoted.
std::string ShellReader::quoted_for_place(const std::string& word) {
  switch (state_) {
    case Place::single_quotes:
      return "'" + word + "'";
    case Place::double_quotes:
      return "\"" + word + "\"";
    case Place::plain:
    case Place::comment:
    case Place::unclear:
      break;
  }
  return word;
}

std::string ShellReader::put(std::string_view plain_word) {
  const bool goes_on_with_a_name = state_ == Place::double_quotes && is_name_letter(before_);
  const bool is_bare = place() == Place::unclear || state_ == Place::single_quotes || state_ == Place::comment ||
                       (state_ == Place::double_quotes && !goes_on_with_a_name);
  const std::string text = is_bare ? std::string(plain_word) : quoted_for_place(shell_word(plain_word));
  read(text);
  return text;
}

std::string ShellReader::put_split(std::string_view text) {
  constexpr std::string_view blanks = " \t\n";
  std::string message;
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find_first_of(blanks), text.size());
    const std::size_t next = std::min(text.find_first_not_of(blanks, blank), text.size());
    if (blank > 0) message += in_single_quotes(text.substr(0, blank));
    if (next > blank) message += ' ';
    text.remove_prefix(next);
  }
  read(message);
  return message;
}

std::optional<std::string> ShellReader::put_variable(std::string_view variable) {
  if (place() == Place::unclear) return std::nullopt;
  const std::string braced = "${" + std::string(variable) + "}";
  const std::string text =
      state_ == Place::double_quotes || state_ == Place::comment ? braced : quoted_for_place("\"" + braced + "\"");
  if (state_ != Place::comment) command_.add_value();
  read(text);
  return text;
}

}  // namespace lockstep
