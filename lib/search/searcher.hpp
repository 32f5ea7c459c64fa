// The decisions of a search: which trial is trained how far. Pure: the same results in the same order give the same
// decisions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "search/space/schedule.hpp"

namespace lockstep {

// Train this trial up to a rung, from the start or from its previous rung.
struct Order {
  std::int64_t trial = 1;   // from 1, in the order of creation
  std::size_t rung = 0;     // of its bracket, from 0
  std::int64_t length = 1;  // absolute: from the start of the training
  bool operator==(const Order&) const = default;
};

class Searcher {
 public:
  explicit Searcher(const SearcherOptions& options);

  // The first orders, by trial. Call it once.
  std::vector<Order> start();
  // The orders that follow the result of an order: `metric`, of which smaller is better, or nullopt if the trial has
  // failed, which counts as the worst result. Of equal metrics, the one that arrived first is the better one, and with
  // successive_halving that of the lower trial. Precondition: the order is open.
  std::vector<Order> report(std::int64_t trial, std::optional<double> metric);

  // From 0. Precondition: the trial was created.
  std::size_t bracket_of(std::int64_t trial) const { return trials_.at(static_cast<std::size_t>(trial - 1)).bracket; }

 private:
  struct Result {
    std::int64_t trial = 0;
    double metric = 0;
    bool is_promoted = false;
  };
  struct BracketState {
    Bracket plan;
    std::vector<std::vector<Result>> rungs;  // results sorted by metric
    std::int64_t created = 0;
    std::int64_t open = 0;  // orders of the current rung; of successive_halving
  };
  struct Trial {
    std::size_t bracket = 0;
    std::size_t rung = 0;
    bool has_failed = false;
  };

  Trial& trial_at(std::int64_t trial) { return trials_.at(static_cast<std::size_t>(trial - 1)); }
  Order create(std::size_t bracket);
  Order order_at_rung(std::int64_t trial);
  std::optional<std::int64_t> promoted_at(std::vector<Result>& rung, std::int64_t trial, double metric) const;
  std::vector<Order> report_asynchronous(std::int64_t trial, double metric);
  std::vector<Order> report_synchronous(std::int64_t trial, double metric);

  SearcherOptions options_;
  std::vector<BracketState> brackets_;
  std::vector<Trial> trials_;
};

}  // namespace lockstep
