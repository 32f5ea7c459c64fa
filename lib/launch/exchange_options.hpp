// Options that name exchanges to measure or to predict, with the values of --local-steps, --servers and --compress.
#pragma once

#include <CLI/App.hpp>
#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "launch/number_option.hpp"
#include "recipe/field_forms.hpp"
#include "scaling/exchange.hpp"

namespace lockstep {

// "--sweep-servers" and the others, if `prefix` is "--sweep-". Each adds its values to `target`. `purpose` follows what
// help says of a value: " to predict".
inline void add_exchanges(CLI::App& app, const std::string& prefix, std::vector<Exchange>& target,
                          const std::string& purpose) {
  const auto declare = [&](const std::string& name, const std::function<Exchange(const std::string&)>& parse,
                           const CLI::Validator& check, const std::string& type, const std::string& help) {
    const auto add = [&target, parse](const std::vector<std::string>& texts) {
      std::ranges::transform(texts, std::back_inserter(target), parse);
    };
    app.add_option_function<std::vector<std::string>>(prefix + name, add, help + purpose)
        ->check(check)
        ->type_name(type)
        ->delimiter(',');
  };
  static constexpr NumberRange<std::int64_t> updates{1, 65536};
  static constexpr NumberRange<std::int64_t> servers{1, 65536};
  declare(
      "local-steps",
      [](const std::string& text) { return Exchange{.local_steps = parse_number(text, updates).value()}; },
      number_check(updates), "UPDATES", "Updates between two exchanges of --sync local (1: all-reduce)");
  declare(
      "servers", [](const std::string& text) { return Exchange{.servers = parse_number(text, servers).value()}; },
      number_check(servers), "RANKS", "Parameter servers of --sync ps");
  declare(
      "compress", [](const std::string& text) { return Exchange{.powersgd_rank = CompressionForm::parse(text)}; },
      CLI::Validator(CompressionForm::validation_error, CompressionForm::values(), "compression"), "METHOD:RANK",
      "Values of --compress");
}

}  // namespace lockstep
