#include "search/search_state.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/printable.hpp"
#include "run/run_file.hpp"
#include "search/recorded_space.hpp"

namespace lockstep {
namespace {

constexpr int journal_version = 1;

}  // namespace

SearchState::SearchState(const Space& space, const SearchFolder& folder, SharedSearch* shared)
    : space_(space),
      shared_(shared),
      decision_(shared ? shared->lock_journal() : nullptr),
      journal_(folder.journal()),
      searcher_(is_continued() ? with_recorded_concurrency(space.searcher, recorded_space()) : space.searcher) {
  replay(folder);
  end_decision();
}

void SearchState::begin_decision() {
  decision_ = shared_->lock_journal();
  for (const nlohmann::json& line : journal_.read_new()) replay_line(line);
}

void SearchState::append(nlohmann::json line) {
  ++line_count_;
  if (shared_) {
    decision_->require_held();
    line["line"] = line_count_;
  }
  journal_.append(line);
}

nlohmann::json SearchState::recorded_space() const { return journal_.lines().front().value("space", nlohmann::json()); }

nlohmann::json SearchState::json_of(const std::vector<Order>& orders) const {
  nlohmann::json list = nlohmann::json::array();
  for (const Order& order : orders) {
    list.push_back({{"trial", order.trial}, {"rung", order.rung + 1}, {"length", order.length}});
    if (order.rung == 0) list.back()["settings"] = trial_settings(space_, order.trial);
  }
  return list;
}

void SearchState::add(const std::vector<Order>& orders) {
  for (const Order& order : orders) {
    TrialRecord& trial = trials_[order.trial];
    if (order.rung == 0) trial.settings = trial_settings(space_, order.trial);
    trial.bracket = searcher_.bracket_of(order.trial);
    trial.ahead = order.rung;
    open_.push_back(order);
  }
  // Promotions come first, so that good trials end early.
  std::ranges::sort(
      open_, [](const Order& a, const Order& b) { return a.rung != b.rung ? a.rung > b.rung : a.trial < b.trial; });
}

void SearchState::replay(const SearchFolder& folder) {
  const std::vector<Order> first = searcher_.start();
  nlohmann::json header = {{"search", journal_version}, {"space", space_.content}, {"orders", json_of(first)}};
  add(first);
  if (!is_continued()) {
    folder.require_no_trials();
    append(header);
    return;
  }
  const std::string difference = difference_in_spaces(recorded_space(), space_.content);
  require(difference.empty(), Failure::usage,
          "'{}' holds a search of another space ('{}' differs). Choose another --output, or restore the space file.",
          folder.path().string(), difference);
  header["space"] = recorded_space();
  nlohmann::json recorded = journal_.lines().front();
  recorded.erase("line");
  require(recorded == header, Failure::bad_data,
          "'{}', line 1 has other decisions than this version of search makes. Continue with the version that started "
          "it, or choose another --output.",
          journal_.path().string());
  line_count_ = 1;
  for (std::size_t line = 1; line < journal_.lines().size(); ++line) replay_line(journal_.lines()[line]);
  log::info("continuing the search in '{}': {} results are known.", folder.path().string(),
            std::ranges::count_if(journal_.lines(), [](const auto& line) { return line.contains("orders"); }) - 1);
  require_folders(folder);
}

void SearchState::require_folders(const SearchFolder& folder) const {
  for (const Order& order : open_) {
    folder.require_own_folder(order.trial);
    if (order.rung == 0 || !is_absent(folder.trial(order.trial))) continue;
    log::warning("'{}' is missing: trial {} is trained from the start again. Its results stay.",
                 folder.trial(order.trial).string(), order.trial);
  }
}

void SearchState::replay_line(const nlohmann::json& line) {
  // Written by a process that had lost the journal's lock without knowing it, so it does not follow from the others.
  if (line.contains("line") && count_in(line, "line") != line_count_ + 1) return;
  ++line_count_;
  const std::int64_t trial = count_in(line, "trial").value_or(0);
  const std::int64_t rung = count_in(line, "rung").value_or(0);
  const auto order = std::ranges::find_if(
      open_, [&](const Order& one) { return one.trial == trial && static_cast<std::int64_t>(one.rung) + 1 == rung; });
  const std::optional<double> metric = number_in(line, "metric");
  const int code = static_cast<int>(std::min<std::int64_t>(count_in(line, "code").value_or(0), 255));
  bool is_known = order != open_.end();
  if (is_known && line.contains("restart")) {
    ++trials_[trial].restarts;
    return;
  }
  if (is_known) {
    const Order done = *order;
    close(done);
    const TrialEnd end{metric ? TrialEnd::Kind::reached : TrialEnd::Kind::ended, metric.value_or(0), code,
                       printable(text_in(line, "reason"))};
    const std::vector<Order> orders = record(done, count_in(line, "steps").value_or(0), end);
    is_known = line.value("orders", nlohmann::json()) == json_of(orders);
    add(orders);
  }
  require(is_known, Failure::bad_data,
          "'{}', line {} has other decisions than this version of search makes. Continue with the version that started "
          "it, or choose another --output.",
          journal_.path().string(), line_count_);
}

// Returns the decisions that follow.
std::vector<Order> SearchState::record(const Order& order, std::int64_t steps, const TrialEnd& end) {
  TrialRecord& trial = trials_.at(order.trial);
  if (end.kind != TrialEnd::Kind::reached) {
    trial.code = end.code;
    trial.reason = end.reason;
    return searcher_.report(order.trial, std::nullopt);
  }
  trial.rung = order.rung;
  trial.length = order.length;
  trial.steps = steps;
  trial.metric = end.metric;
  return searcher_.report(order.trial, space_.smaller_is_better ? end.metric : -end.metric);
}

std::vector<Order> SearchState::add_result(const Order& order, std::int64_t steps, const TrialEnd& end) {
  const std::vector<Order> orders = record(order, steps, end);
  close(order);
  nlohmann::json line = {{"trial", order.trial}, {"rung", order.rung + 1}, {"orders", json_of(orders)}};
  if (end.kind == TrialEnd::Kind::reached) {
    line["steps"] = steps;
    line["metric"] = end.metric;
  } else {
    line["code"] = end.code;
    line["reason"] = end.reason;
  }
  append(line);
  add(orders);
  return orders;
}

void SearchState::add_restart(const Order& order, const TrialEnd& end) {
  const std::int64_t restarts = ++trials_.at(order.trial).restarts;
  append({{"trial", order.trial},
          {"rung", order.rung + 1},
          {"restart", restarts},
          {"code", end.code},
          {"reason", end.reason}});
}

void SearchState::close(const Order& order) {
  trials_.at(order.trial).ahead.reset();
  std::erase(open_, order);
}

}  // namespace lockstep
