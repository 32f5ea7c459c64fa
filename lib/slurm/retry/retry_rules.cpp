#include "slurm/retry/retry_rules.hpp"

#include <regex.h>

#include <array>
#include <memory>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"

namespace lockstep {
namespace {

constexpr std::size_t longest_file = 1 << 20;
constexpr std::size_t longest_line = 4096;  // of a log: what follows is not looked at
constexpr std::string_view grammar = "KIND [elsewhere] code NUMBER, or KIND [elsewhere] log PATTERN";

class Pattern {
 public:
  explicit Pattern(const std::string& text) : code_(::regcomp(&regex_, text.c_str(), REG_EXTENDED | REG_NOSUB)) {}
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  ~Pattern() {
    if (code_ == 0) ::regfree(&regex_);
  }

  // Empty where the pattern is one.
  std::string mistake() const {
    if (code_ == 0) return "";
    std::array<char, 200> words{};
    ::regerror(code_, &regex_, words.data(), words.size());
    return words.data();
  }
  bool matches(const std::string& line) const {
    return code_ == 0 && ::regexec(&regex_, line.c_str(), 0, nullptr, 0) == 0;
  }

 private:
  regex_t regex_{};
  int code_;
};

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r";
  const std::size_t first = std::min(text.find_first_not_of(blank), text.size());
  text.remove_prefix(first);
  return text.substr(0, text.find_last_not_of(blank) + 1);
}

std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
  const std::string_view word = line.substr(0, end);
  line = trimmed(line.substr(end));
  return word;
}

// What is wrong with the line; empty where `rule` now holds it.
std::string read_rule(std::string_view line, RetryRule& rule) {
  const std::string_view kind = take_word(line);
  const auto* const choice = find_choice(retry_kinds, kind);
  if (choice == nullptr || choice->value == RetryKind::none) {
    return fmt::format("'{}' is no kind. Known: transient, transient_conflict, unknown, permanent", printable(kind));
  }
  rule.kind = choice->value;
  std::string_view what = take_word(line);
  if (what == "elsewhere") {
    rule.next = NextNodes::others;
    what = take_word(line);
  }
  if (what == "code") {
    constexpr NumberRange<int> codes{1, 255};
    rule.code = parse_number(line, codes);
    return rule.code ? "" : no_number_words(line, codes);
  }
  if (what != "log" || line.empty()) return fmt::format("a rule is {}", grammar);
  rule.pattern = line;
  const std::string mistake = Pattern(rule.pattern).mistake();
  return mistake.empty() ? "" : fmt::format("'{}' is no pattern: {}", printable(line), mistake);
}

std::optional<std::string> matching_line(const std::string& pattern, std::string_view log) {
  const Pattern compiled(pattern);
  while (!log.empty()) {
    const std::string line(take_line(log).substr(0, longest_line));
    if (compiled.matches(line)) return line;
  }
  return std::nullopt;
}

}  // namespace

RetryRules parse_retry_rules(std::string_view text, const std::filesystem::path& file) {
  RetryRules rules;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = trimmed(take_line(text));
    if (line.empty() || line.starts_with('#')) continue;
    RetryRule rule;
    const std::string mistake = read_rule(line, rule);
    require(mistake.empty(), Failure::usage, "line {} of '{}': {} (LOCKSTEP_RETRY_RULES). Correct it.", number,
            file.string(), mistake);
    rules.push_back(std::move(rule));
  }
  return rules;
}

RetryRules read_retry_rules(const std::filesystem::path& file) {
  return parse_retry_rules(read_file(file, longest_file), file);
}

std::optional<RuleMatch> first_match(const RetryRules& rules, int code, std::string_view log) {
  for (const RetryRule& rule : rules) {
    if (rule.code && *rule.code == code) return RuleMatch{rule, fmt::format("code {}", code)};
    if (rule.code) continue;
    if (const std::optional<std::string> line = matching_line(rule.pattern, log)) return RuleMatch{rule, *line};
  }
  return std::nullopt;
}

}  // namespace lockstep
