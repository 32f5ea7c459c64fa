#include "search/custom/proposal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/text/json_text.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"

namespace lockstep {
namespace {

using nlohmann::json;
using Kind = Hyperparameter::Kind;

// A word of a list: its value, true for a flag, or false for an option that is left out.
json choice_of(const Hyperparameter& parameter, const OptionWord& word) {
  const std::size_t place = word.find('=');
  if (place == std::string::npos) return !word.empty();
  return word.substr(parameter.option.size() + 3);  // "--", "="
}

std::pair<double, double> range_of(const Hyperparameter& parameter) {
  if (parameter.kind != Kind::logarithmic) return {parameter.least, parameter.most};
  const double first = std::pow(parameter.base, parameter.least);
  const double last = std::pow(parameter.base, parameter.most);
  return {std::min(first, last), std::max(first, last)};
}

std::string shown(const json& value) { return printable(json_text(value).substr(0, 100)); }

OptionWord proposed_word(const Hyperparameter& parameter, const json& value) {
  if (parameter.kind == Kind::listed) {
    const json text = value.is_number() ? json(number_text(value.get<double>())) : value;
    for (const OptionWord& word : parameter.words) {
      if (choice_of(parameter, word) == text) return word;
    }
    throw Error(Failure::usage, fmt::format("'{}' is {}, which is none of its values", parameter.option, shown(value)));
  }
  const auto [low, high] = range_of(parameter);
  const double number = value.is_number() ? value.get<double>() : std::nan("");
  const double room = parameter.kind == Kind::logarithmic ? 1e-9 * high : 0;  // for rounded powers
  const bool is_whole = parameter.kind != Kind::integer || number == std::floor(number);
  require(number >= low - room && number <= high + room && is_whole, Failure::usage,
          "'{}' is {}, which is not {} from {} to {}", parameter.option, shown(value),
          parameter.kind == Kind::integer ? "a whole number" : "a number", number_text(low), number_text(high));
  return parameter.kind == Kind::integer
             ? fmt::format("--{}={}", parameter.option, static_cast<std::int64_t>(number))
             : fmt::format("--{}={}", parameter.option, number_text(std::clamp(number, low, high)));
}

// As in a search's file, names may have '_' in place of '-'.
json with_dashes_in_names(const json& given) {
  json settings = json::object();
  for (const auto& [name, value] : given.items()) {
    std::string option = name;
    std::ranges::replace(option, '_', '-');
    require(!settings.contains(option), Failure::usage, "'settings' has '{}' twice", printable(option));
    settings[option] = value;
  }
  return settings;
}

}  // namespace

json hyperparameters_json(const Space& space) {
  json all = json::object();
  for (const Hyperparameter& parameter : space.hyperparameters) {
    if (is_constant(parameter)) continue;
    json& one = all[parameter.option];
    if (parameter.kind == Kind::listed) {
      for (const OptionWord& word : parameter.words) one["choices"].push_back(choice_of(parameter, word));
      continue;
    }
    std::tie(one["low"], one["high"]) = range_of(parameter);
    one["log"] = parameter.kind == Kind::logarithmic;
    one["int"] = parameter.kind == Kind::integer;
  }
  return all;
}

std::vector<OptionWord> proposed_words(const Space& space, const json& given) {
  require(given.is_object(), Failure::usage, "'settings' is not an object");
  const json settings = with_dashes_in_names(given);
  std::vector<OptionWord> words;
  for (const Hyperparameter& parameter : space.hyperparameters) {
    const auto value = settings.find(parameter.option);
    require(value != settings.end() || is_constant(parameter), Failure::usage, "'settings' lacks '{}'",
            parameter.option);
    words.push_back(value == settings.end() ? parameter.words.front() : proposed_word(parameter, *value));
  }
  for (const auto& [name, value] : settings.items()) {
    const bool is_known =
        std::ranges::find(space.hyperparameters, name, &Hyperparameter::option) != space.hyperparameters.end();
    require(is_known, Failure::usage, "'settings' has '{}', which is not in the space", printable(name));
  }
  std::erase(words, "");
  return words;
}

}  // namespace lockstep
