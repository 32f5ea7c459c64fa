#include "embedding/row_table.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <utility>

#include "base/error.hpp"

namespace lockstep {
namespace {

void decay(std::span<float> values, double factor) {
  if (factor == 1) return;
  for (float& value : values) value = static_cast<float>(static_cast<double>(value) * factor);
}

}  // namespace

RowTable::RowTable(std::string name, std::int64_t rows, std::int64_t width, const RowOptimizerOptions& options)
    : name_(std::move(name)), rows_(rows), width_(width), options_(options), rule_(row_rule(options)) {
  const auto count = static_cast<std::size_t>(rows * width);
  values_.assign(count, 0.0F);
  states_.assign(state_names(rule_).size(), std::vector<float>(count, 0.0F));
  if (options.weight_decay != 0) last_steps_.assign(static_cast<std::size_t>(rows), 0.0F);
  add_decay_logs();
}

// Of the steps done. A pure function of the schedule, so the state does not have them.
void RowTable::add_decay_logs() {
  if (last_steps_.empty() || !options_.schedule) return;
  if (decay_logs_.empty()) decay_logs_.push_back(0);
  for (std::int64_t step = std::ssize(decay_logs_) - 1; step < steps_; ++step) {
    const double decay = static_cast<double>(options_.rate_at(step)) * static_cast<double>(options_.weight_decay);
    decay_logs_.push_back(decay_logs_.back() + std::log1p(-decay));
  }
}

std::int64_t RowTable::bytes() const {
  return static_cast<std::int64_t>(sizeof(float)) *
         (rows_ * width_ * (1 + std::ssize(states_)) + std::ssize(last_steps_));
}

std::vector<float> RowTable::values() const {
  std::vector<float> values = values_;
  if (last_steps_.empty()) return values;
  for (std::int64_t row = 0; row < rows_; ++row) {
    decay(std::span(values).subspan(static_cast<std::size_t>(row * width_), static_cast<std::size_t>(width_)),
          catch_up_factor(row));
  }
  return values;
}

void RowTable::set_values(std::span<const float> values) {
  assert(values.size() == values_.size() && steps_ == 0);
  std::ranges::copy(values, values_.begin());
}

void RowTable::require_rows(std::span<const std::int64_t> rows) const {
  for (const std::int64_t row : rows) {
    require(row >= 0 && row < rows_, Failure::bad_data,
            "row {} is beyond the embedding table '{}', which has {} rows. Use the data that the table was made for.",
            row, name_, rows_);
  }
}

double RowTable::catch_up_factor(std::int64_t row) const {
  if (last_steps_.empty()) return 1;
  const auto last = static_cast<std::int64_t>(last_steps_[static_cast<std::size_t>(row)]);
  if (!decay_logs_.empty()) return std::exp(decay_logs_.back() - decay_logs_[static_cast<std::size_t>(last)]);
  const std::int64_t missed = steps_ - last;
  const double kept = 1 - static_cast<double>(options_.learning_rate) * static_cast<double>(options_.weight_decay);
  return integer_power(kept, missed);
}

void RowTable::fetch(std::span<const std::int64_t> rows, std::span<float> values) const {
  assert(std::ssize(values) == std::ssize(rows) * width_);
  require_rows(rows);
  const auto width = static_cast<std::size_t>(width_);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::span<float> to = values.subspan(i * width, width);
    std::copy_n(values_.begin() + rows[i] * width_, width, to.begin());
    decay(to, catch_up_factor(rows[i]));
  }
}

template <class Rule>
void RowTable::update_rows(const Rule& rule, const RowGradients& gradients) {
  const StepRates step{options_.rate_at(steps_), 1, static_cast<float>(steps_ + 1)};
  const typename Rule::Rates rates = rule.rates(step, UpdateRun{0, 0, options_.weight_decay}, {});
  const float* gradient = gradients.values.data();
  for (const std::int64_t row : gradients.rows) {
    const auto first = static_cast<std::size_t>(row * width_);
    const std::span<float> values = std::span(values_).subspan(first, static_cast<std::size_t>(width_));
    decay(values, catch_up_factor(row));
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::array<float, 2> state{};
      for (std::size_t s = 0; s < Rule::states; ++s) state[s] = states_[s][first + i];
      rule(rates, *gradient++, state.data(), values[i]);
      for (std::size_t s = 0; s < Rule::states; ++s) states_[s][first + i] = state[s];
    }
    if (!last_steps_.empty()) last_steps_[static_cast<std::size_t>(row)] = static_cast<float>(steps_ + 1);
  }
}

void RowTable::update(const RowGradients& gradients) {
  assert(std::ssize(gradients.values) == std::ssize(gradients.rows) * width_ && steps_ < max_steps);
  require_rows(gradients.rows);
  std::visit([&](const auto& rule) { update_rows(rule, gradients); }, rule_);
  ++steps_;
  add_decay_logs();
}

RowTable::Arrays RowTable::state() const {
  Arrays state = {{name_ + ".values", values_}, {name_ + ".steps", {static_cast<float>(steps_)}}};
  const std::vector<std::string> names = state_names(rule_);
  for (std::size_t i = 0; i < names.size(); ++i) state.emplace(name_ + "." + names[i], states_[i]);
  if (!last_steps_.empty()) state.emplace(name_ + ".last_steps", last_steps_);
  return state;
}

void RowTable::assign(const Arrays& state) {
  Arrays own = this->state();
  for (auto& [name, values] : own) {
    const auto found = state.find(name);
    require(
        found != state.end() && found->second.size() == values.size(), Failure::bad_data,
        "the state of the embedding table '{}' does not fit: the array '{}' {}. Use the state of a table with {} rows "
        "of width {} and the same optimizer.",
        name_, name, found == state.end() ? "is missing" : "has another size", rows_, width_);
  }
  const float steps = state.at(name_ + ".steps")[0];
  const auto is_step = [](float step, float most) { return step >= 0 && step <= most && step == std::floor(step); };
  const bool are_steps = is_step(steps, static_cast<float>(max_steps)) &&
                         (last_steps_.empty() || std::ranges::all_of(state.at(name_ + ".last_steps"),
                                                                     [&](float step) { return is_step(step, steps); }));
  require(are_steps, Failure::bad_data,
          "the state of the embedding table '{}' is damaged: it has numbers of steps that cannot be. Use another "
          "checkpoint.",
          name_);
  values_ = state.at(name_ + ".values");
  steps_ = static_cast<std::int64_t>(steps);
  decay_logs_.clear();
  add_decay_logs();
  const std::vector<std::string> names = state_names(rule_);
  for (std::size_t i = 0; i < names.size(); ++i) states_[i] = state.at(name_ + "." + names[i]);
  if (!last_steps_.empty()) last_steps_ = state.at(name_ + ".last_steps");
}

}  // namespace lockstep
