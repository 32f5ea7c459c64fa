// The decisions of a search whose results are known, for searcher_oracle_test.py. Reads one search a line:
//
//   {"kind": "asha", "trials": 10, "concurrent": 3, "length": 100, "divisor": 4, "rungs": 5, "mode": "standard",
//    "stop_once": false, "results": [[0.5, null, ...], ...], "picks": [3, 1, ...]}
//
// `results` has a row for each trial with a result for each rung; null has failed. Of the open orders, the one with
// index picks[i] % count ends next. Prints the orders that follow each result: "1:0:25 ...".
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text/json_text.hpp"
#include "search/searcher.hpp"

using namespace lockstep;

namespace {

SearcherOptions options_of(const nlohmann::json& search) {
  SearcherOptions options;
  options.kind = find_choice(searcher_kinds, search["kind"].get<std::string>())->value;
  options.mode = find_choice(bracket_modes, search["mode"].get<std::string>())->value;
  options.max_trials = search["trials"];
  options.max_concurrent_trials = search["concurrent"];
  options.max_length = search["length"];
  options.divisor = search["divisor"];
  options.max_rungs = search["rungs"];
  if (search["stop_once"]) options.promotion = Promotion::stop_once;
  return options;
}

std::string text_of(const std::vector<Order>& orders) {
  std::string text;
  for (const Order& order : orders) text += fmt::format("{}:{}:{} ", order.trial, order.rung, order.length);
  return text + "\n";
}

void decide(const nlohmann::json& search) {
  Searcher searcher(options_of(search));
  std::vector<Order> open = searcher.start();
  std::cout << text_of(open);
  for (std::size_t turn = 0; !open.empty(); ++turn) {
    const std::size_t picks = search["picks"].size();
    const std::size_t index = search["picks"][turn % picks].get<std::size_t>() % open.size();
    const Order order = open[index];
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(index));
    const nlohmann::json& result = search["results"][static_cast<std::size_t>(order.trial - 1)][order.rung];
    const std::vector<Order> next =
        searcher.report(order.trial, result.is_null() ? std::nullopt : std::optional(result.get<double>()));
    std::cout << text_of(next);
    open.insert(open.end(), next.begin(), next.end());
  }
  std::cout << "end\n";
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) decide(parse_json(line));
}
