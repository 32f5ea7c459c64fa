#include "search/custom/custom_searcher.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text/json_text.hpp"
#include "base/text/printable.hpp"
#include "run/run_file.hpp"
#include "search/custom/proposal.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

json metric_json(const std::optional<double>& metric) { return metric ? json(*metric) : json(); }

}  // namespace

void CustomSearcher::report(const Order& order, std::optional<double> metric) {
  reports_.push_back({order.trial, {order.length, metric}});
  waits_ = false;
}

json CustomSearcher::begin_message() const {
  json trials = json::array();
  for (const auto& [number, trial] : trials_) {
    json results = json::array();
    for (const Result& result : trial.results) {
      results.push_back({{"length", result.length}, {"metric", metric_json(result.metric)}});
    }
    trials.push_back(
        {{"trial", number}, {"settings", trial.settings}, {"results", results}, {"stopped", trial.is_stopped}});
  }
  return {{"ask", "begin"},
          {"metric", metric_name(space_.metric)},
          {"smaller_is_better", space_.smaller_is_better},
          {"unit", choice_name(length_units, space_.unit)},
          {"max_length", space_.searcher.max_length},
          {"seed", space_.seed},
          {"hyperparameters", hyperparameters_json(space_)},
          {"trials", trials}};
}

std::optional<json> CustomSearcher::next_question(bool has_room) {
  if (!reports_.empty()) {
    const Report& report = reports_.front();
    return json{{"ask", "report"},
                {"trial", report.trial},
                {"length", report.result.length},
                {"metric", metric_json(report.result.metric)}};
  }
  if (!has_room || waits_ || !proposes()) return std::nullopt;
  return json{{"ask", "propose"}, {"trial", std::ssize(trials_) + 1}};
}

std::optional<json> CustomSearcher::next_answer(bool has_room, bool is_busy) {
  if (!question_) {
    question_ = next_question(has_room);
    if (!question_) return std::nullopt;
    if (!program_) {
      program_ = std::make_unique<SearcherProgram>(space_.command, space_.answer_seconds, folder_ / "searcher.log");
      program_->send(begin_message());
    }
    program_->ask(*question_);
  }
  std::optional<json> answer = program_->answer();
  if (!answer) return std::nullopt;
  const json question = *std::exchange(question_, std::nullopt);
  if (*answer == "wait" && question["ask"] == "propose") {
    require(is_busy, Failure::usage,
            "{} answered \"wait\", but no trial is under way, so nothing would change. Correct it: the same command "
            "continues the search.",
            program_->name());
    waits_ = true;
    return std::nullopt;
  }
  return json{{"ask", question["ask"]}, {"trial", question["trial"]}, {"answer", std::move(*answer)}};
}

std::vector<Order> CustomSearcher::follow(const json& line) {
  const json answer = line.value("answer", json());
  const std::int64_t trial = count_in(line, "trial").value_or(0);
  const bool is_report = text_in(line, "ask") == "report";
  try {
    return is_report ? follow_report(trial, answer) : follow_proposal(answer);
  } catch (const Error& error) {
    throw Error(
        Failure::usage,
        fmt::format("'{}' answered {} to \"{}\" of trial {}, but {}. Correct it: the same command continues the "
                    "search.",
                    printable(fmt::format("{}", fmt::join(space_.command, " "))),
                    printable(json_text(answer).substr(0, 200)), is_report ? "report" : "propose", trial,
                    error.what()));
  }
}

std::int64_t CustomSearcher::length_in(const json& answer, std::int64_t above) const {
  const std::int64_t most = space_.searcher.max_length;
  require(above < most, Failure::usage, "the trial has its full length, {}, so only \"stop\" can follow", most);
  const std::optional<std::int64_t> length = count_in(answer, "length");
  require(length && *length > above && *length <= most, Failure::usage,
          "'length' is not a whole number above {} and up to {}", above, most);
  return *length;
}

std::vector<Order> CustomSearcher::follow_proposal(const json& answer) {
  if (answer == "done") {
    is_done_ = true;
    return {};
  }
  require(answer.is_object(), Failure::usage, "it is neither an object, nor 'wait', nor 'done'");
  Trial trial;
  trial.settings = answer.value("settings", json());
  trial.words = proposed_words(space_, trial.settings);
  trial.length = answer.contains("length") ? length_in(answer, 0) : space_.searcher.max_length;
  const std::int64_t number = std::ssize(trials_) + 1;
  const Order order{number, 0, trial.length};
  trials_.emplace(number, std::move(trial));
  return {order};
}

std::vector<Order> CustomSearcher::follow_report(std::int64_t number, const json& answer) {
  const auto report = std::ranges::find(reports_, number, &Report::trial);
  require(report != reports_.end(), Failure::usage, "there is no such question");
  Trial& trial = trials_.at(number);
  const Result result = report->result;
  std::vector<Order> orders;
  if (answer != "stop") {
    require(answer.is_object(), Failure::usage, "it is neither an object nor 'stop'");
    require(result.metric.has_value(), Failure::usage, "the trial has failed");
    orders.push_back({number, trial.rung + 1, length_in(answer, trial.length)});
    ++trial.rung;
    trial.length = orders.front().length;
  }
  trial.results.push_back(result);
  trial.is_stopped = orders.empty();
  reports_.erase(report);
  return orders;
}

void CustomSearcher::finish() {
  if (program_) program_->finish();
}

}  // namespace lockstep
