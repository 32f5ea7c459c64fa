#include "slurm/retry/retry_rules.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"
#include "slurm/retry/pattern.hpp"

namespace lockstep {
namespace {

constexpr std::size_t longest_file = 1 << 20;
constexpr std::size_t longest_line = 4096;  // of a log, in bytes; the rest of a line is ignored
constexpr std::size_t max_rules = 64;
constexpr std::size_t longest_pattern = 200;
constexpr std::int64_t max_places = 1000;  // of a pattern; matching time grows faster than this number
constexpr std::string_view grammar = "KIND [elsewhere] code NUMBER, or KIND [elsewhere] log PATTERN";

// The number of characters in a pattern once its repetitions are written out: 40 for (a{3}b){10}. Stops counting at
// max_places + 1.
class PlaceCount {
 public:
  explicit PlaceCount(std::string_view pattern) : rest_(pattern) {
    while (!rest_.empty() && levels_.back().all <= max_places) take();
  }
  std::int64_t places() const {
    std::int64_t sum = 0;
    for (const Level& level : levels_) sum += level.all;
    return sum;
  }

 private:
  struct Level {  // of nested parentheses
    std::int64_t all = 0;
    std::int64_t last = 0;  // of these, the ones that a following repetition repeats
  };

  void take() {
    constexpr std::string_view marks = "|*+?^$";
    const char first = rest_.front();
    std::size_t length = 1;
    if (first == '{') return repeat();
    if (first == '(') {
      levels_.emplace_back();
    } else if (first == ')' && levels_.size() > 1) {
      const std::int64_t inner = levels_.back().all;
      levels_.pop_back();
      add(inner);
    } else if (marks.find(first) == marks.npos) {
      if (first == '\\') length = 2;
      if (first == '[') length = std::min(rest_.find(']', rest_.starts_with("[^") ? 3 : 2), rest_.size() - 1) + 1;
      add(1);
    }
    rest_.remove_prefix(std::min(length, rest_.size()));
  }
  // {3}, {3,} or {3,5}
  void repeat() {
    constexpr NumberRange<std::int64_t> counts{0, 1 << 20};
    const std::size_t end = std::min(rest_.find('}'), rest_.size());
    const std::string_view inside = rest_.substr(1, end - 1);
    const std::size_t comma = std::min(inside.find(','), inside.size());
    const std::int64_t least = parse_number(inside.substr(0, comma), counts).value_or(1);
    const std::int64_t most = parse_number(inside.substr(std::min(comma + 1, inside.size())), counts).value_or(1);
    Level& level = levels_.back();
    const std::int64_t repeated = level.last * std::max({least, most, std::int64_t{1}});
    level.all += repeated - level.last;
    level.last = repeated;
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
  }
  void add(std::int64_t places) {
    levels_.back().all += places;
    levels_.back().last = places;
  }

  std::string_view rest_;
  std::vector<Level> levels_{1};
};

// Back references make matching take exponential time, and POSIX extended expressions do not have them.
bool has_back_reference(std::string_view pattern) {
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '\\') continue;
    ++i;
    if (pattern[i] >= '1' && pattern[i] <= '9') return true;
  }
  return false;
}

// The error message; empty if the pattern is valid and fast to match.
std::string mistake_in(const std::string& pattern) {
  if (pattern.size() > longest_pattern) {
    return fmt::format("the pattern has {} bytes, more than the limit of {}", pattern.size(), longest_pattern);
  }
  if (has_back_reference(pattern)) return "back references (\\1) are not supported";
  if (PlaceCount(pattern).places() > max_places) {
    return fmt::format("the repetitions of '{}' expand to more than {} characters", printable(pattern), max_places);
  }
  const std::string mistake = Pattern(pattern).mistake();
  return mistake.empty() ? "" : fmt::format("'{}' is not a valid pattern: {}", printable(pattern), mistake);
}

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

// Parses a line into `rule`. Returns the error message; empty on success.
std::string read_rule(std::string_view line, RetryRule& rule) {
  const std::string_view kind = take_word(line);
  const auto* const choice = find_choice(retry_kinds, kind);
  if (choice == nullptr || choice->value == RetryKind::none) {
    return fmt::format("'{}' is not a kind of failure. Known: transient, transient_conflict, unknown, permanent",
                       printable(kind));
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
    return rule.code ? "" : not_a_number_message(line, codes);
  }
  if (what != "log" || line.empty()) return fmt::format("a rule has the form {}", grammar);
  rule.pattern = line;
  return mistake_in(rule.pattern);
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
    const std::string mistake =
        rules.size() == max_rules ? fmt::format("there are more than {} rules", max_rules) : read_rule(line, rule);
    require(mistake.empty(), Failure::usage,
            "line {} of '{}' (LOCKSTEP_RETRY_RULES) is not valid: {}. Correct the line.", number, file.string(),
            mistake);
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
