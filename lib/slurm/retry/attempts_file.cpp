#include "slurm/retry/attempts_file.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "slurm/node_list.hpp"

namespace lockstep {
namespace {

constexpr std::size_t longest_file = 16 << 20;
constexpr std::int64_t most = std::int64_t{1} << 53;  // largest number in the file

// Throws std::exception if the value is not a valid whole number.
std::int64_t whole_number(const nlohmann::json& value) {
  if (!value.is_number_unsigned() || value > most) throw Error("not a whole number");
  return value.get<std::int64_t>();
}
std::optional<std::int64_t> number_or_null(const nlohmann::json& value) {
  return value.is_null() ? std::nullopt : std::optional(whole_number(value));
}

std::vector<std::string> node_names(const nlohmann::json& values) {
  std::vector<std::string> names;
  for (const nlohmann::json& value : values) {
    names.push_back(value.get<std::string>());
    if (expand_node_list(names.back()) != std::vector{names.back()}) throw Error("not a node name");
  }
  return names;
}

template <typename Choices>
auto value_of(const Choices& choices, const nlohmann::json& name) {
  const auto* const choice = find_choice(choices, name.get<std::string>());
  if (choice == nullptr) throw Error("an unknown name");
  return choice->value;
}

nlohmann::json json_of(const std::optional<std::int64_t>& number) {
  return number ? nlohmann::json(*number) : nlohmann::json();
}

}  // namespace

std::string attempt_line(const Attempt& attempt) {
  return json_text({
      {"job", attempt.job},
      {"attempt", attempt.attempt},
      {"cause", row_of(attempt.cause).name},
      {"kind", choice_name(retry_kinds, attempt.kind)},
      {"code", attempt.code ? nlohmann::json(*attempt.code) : nlohmann::json()},
      {"action", attempt.action ? nlohmann::json(choice_name(retry_actions, *attempt.action)) : nlohmann::json()},
      {"sentence", attempt.sentence},
      {"counted", attempt.counted},
      {"transient_retries", attempt.transient_retries},
      {"counted_retries", attempt.counted_retries},
      {"checkpoint_step", json_of(attempt.checkpoint_step)},
      {"excluded", attempt.excluded},
      {"started", attempt.started},
      {"ended", json_of(attempt.ended)},
      {"nodes", attempt.nodes},
      {"log_from", attempt.log_from},
  });
}

std::optional<Attempt> parse_attempt(std::string_view line) {
  try {
    const nlohmann::json json = parse_json(line);
    Attempt attempt;
    attempt.job = whole_number(json.at("job"));
    attempt.attempt = whole_number(json.at("attempt"));
    const std::optional<Cause> cause = cause_named(json.at("cause").get<std::string>());
    if (!cause) return std::nullopt;
    attempt.cause = *cause;
    attempt.kind = value_of(retry_kinds, json.at("kind"));
    if (!json.at("code").is_null()) attempt.code = static_cast<int>(whole_number(json.at("code")) & 0xff);
    if (!json.at("action").is_null()) attempt.action = value_of(retry_actions, json.at("action"));
    attempt.sentence = json.at("sentence").get<std::string>();
    attempt.counted = json.at("counted").get<bool>();
    attempt.transient_retries = whole_number(json.at("transient_retries"));
    attempt.counted_retries = whole_number(json.at("counted_retries"));
    attempt.checkpoint_step = number_or_null(json.at("checkpoint_step"));
    attempt.excluded = node_names(json.at("excluded"));
    attempt.started = whole_number(json.at("started"));
    attempt.ended = number_or_null(json.at("ended"));
    attempt.nodes = node_names(json.at("nodes"));
    attempt.log_from = whole_number(json.at("log_from"));
    return attempt;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

AttemptsFile::AttemptsFile(std::filesystem::path path, std::int64_t job) : path_(std::move(path)) {
  if (is_absent(path_)) return;
  text_ = read_file(path_, longest_file);
  std::string_view rest = text_;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::optional<Attempt> attempt = parse_attempt(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (attempt && attempt->job == job) take(std::move(*attempt));
  }
}

const Attempt* AttemptsFile::find(std::int64_t attempt) const {
  const auto found = std::ranges::find(attempts_, attempt, &Attempt::attempt);
  return found == attempts_.end() ? nullptr : &*found;
}

RetryHistory AttemptsFile::history() const {
  if (attempts_.empty()) return {};
  const Attempt& last = attempts_.back();
  return {last.transient_retries, last.counted_retries, last.excluded};
}

void AttemptsFile::add(const Attempt& attempt) {
  if (!text_.empty() && text_.back() != '\n') text_ += '\n';
  text_ += attempt_line(attempt) + '\n';
  write_file_atomically(path_, text_);
  take(attempt);
}

void AttemptsFile::take(Attempt attempt) {
  const auto at = std::ranges::lower_bound(attempts_, attempt.attempt, {}, &Attempt::attempt);
  if (at != attempts_.end() && at->attempt == attempt.attempt) {
    *at = std::move(attempt);
  } else {
    attempts_.insert(at, std::move(attempt));
  }
}

}  // namespace lockstep
