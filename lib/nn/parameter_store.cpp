#include "nn/parameter_store.hpp"

#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <cassert>
#include <functional>
#include <numeric>
#include <ranges>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "device/flat/flat_passes.hpp"

namespace lockstep {
namespace {

// Slices start on cache lines, so that vector loops and copies on different slices never share a line.
constexpr std::int64_t slice_multiple = Arena::alignment / size_of(DType::f32);

std::int64_t padded(std::int64_t count) { return (count + slice_multiple - 1) / slice_multiple * slice_multiple; }

template <typename Items>
std::int64_t padded_sum(const Items& items) {
  std::int64_t sum = 0;
  for (const auto& item : items) sum += padded(item.stored);
  return sum;
}

// Where a named entry is read or written.
struct Slot {
  std::string_view name;
  std::vector<std::int64_t> dims;
  ParameterKind kind;
  Tensor stored;
};

std::int64_t count_of(std::span<const std::int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

// Empty if the array is not allocated: only names and dims are known then.
Tensor part_of(const Tensor& array, std::int64_t offset, std::int64_t count) {
  return array ? array.slice(offset, count) : Tensor();
}

// For arrays in the layout of the store's values and running statistics.
std::vector<Slot> slots_by_name(const std::deque<Parameter>& parameters, const Tensor& values,
                                const std::deque<Statistic>& statistics, const Tensor& running) {
  std::vector<Slot> slots;
  slots.reserve(parameters.size() + statistics.size());
  for (const Parameter& p : parameters) slots.push_back({p.name, p.dims, p.kind, part_of(values, p.offset, p.stored)});
  for (const Statistic& s : statistics) {
    slots.push_back({s.name, {s.channels}, ParameterKind::channel_vector, part_of(running, s.offset, s.stored)});
  }
  std::ranges::sort(slots, {}, &Slot::name);
  assert(std::ranges::adjacent_find(slots, {}, &Slot::name) == slots.end());  // fails if two layers have the same name
  return slots;
}

// Slots in an array with the layout of the gradients.
std::vector<Slot> slots_in(const Tensor& array, const std::deque<Parameter>& parameters) {
  return slots_by_name(parameters, array, {}, {});
}

std::string dims_text(std::span<const std::int64_t> dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

// "'a', 'b', 'c' and 4 more"
std::string first_few(const std::vector<std::string>& items) {
  constexpr std::size_t shown = 3;
  const std::size_t count = std::min(shown, items.size());
  std::string text =
      fmt::format("{}", fmt::join(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(count), ", "));
  if (items.size() > count) text += fmt::format(" and {} more", items.size() - count);
  return text;
}

// Why given entries do not fit a model.
struct Misfit {
  std::vector<std::string> missing;
  std::vector<std::string> unknown;
  std::vector<std::string> other_shapes;

  bool is_none() const { return missing.empty() && unknown.empty() && other_shapes.empty(); }
  std::string text() const {
    std::vector<std::string> parts;
    if (!missing.empty()) parts.push_back("missing " + first_few(missing));
    if (!unknown.empty()) parts.push_back("unexpected " + first_few(unknown));
    if (!other_shapes.empty()) parts.push_back("wrong shape of " + first_few(other_shapes));
    return fmt::format("{}", fmt::join(parts, "; "));
  }
};

// Both must be sorted by name.
Misfit compare(const std::vector<Slot>& slots, const std::vector<const ParameterStore::Entry*>& given) {
  Misfit misfit;
  auto slot = slots.begin();
  auto entry = given.begin();
  while (slot != slots.end() || entry != given.end()) {
    if (entry == given.end() || (slot != slots.end() && slot->name < (*entry)->name)) {
      misfit.missing.push_back(fmt::format("'{}'", slot->name));
      ++slot;
    } else if (slot == slots.end() || (*entry)->name < slot->name) {
      misfit.unknown.push_back(fmt::format("'{}'", (*entry)->name));
      ++entry;
    } else {
      if (slot->dims != (*entry)->dims) {
        misfit.other_shapes.push_back(fmt::format("'{}' ({} in the file, {} in the model)", slot->name,
                                                  dims_text((*entry)->dims), dims_text(slot->dims)));
      }
      ++slot;
      ++entry;
    }
  }
  return misfit;
}

// Throws Error(bad_data) unless `given`, sorted by name, are the entries of `slots`.
void check_entries(const std::vector<Slot>& slots, const std::vector<const ParameterStore::Entry*>& given) {
  const auto twice = std::ranges::adjacent_find(given, {}, &ParameterStore::Entry::name);
  require(twice == given.end(), Failure::bad_data,
          "the weights are damaged: '{}' appears twice. Use another copy of the file.",
          twice == given.end() ? "" : (*twice)->name);
  const Misfit misfit = compare(slots, given);
  require(
      misfit.is_none(), Failure::bad_data,
      "the weights do not fit this model: {}. Use the --model and the number of classes that they were written with.",
      misfit.text());
  for (const ParameterStore::Entry* const entry : given) {
    require(static_cast<std::int64_t>(entry->values.size()) == count_of(entry->dims), Failure::bad_data,
            "the weights are damaged: '{}' has {} values, but its shape {} needs {}. Use another copy of the file.",
            entry->name, entry->values.size(), dims_text(entry->dims), count_of(entry->dims));
  }
}

std::vector<const ParameterStore::Entry*> by_name(std::span<const ParameterStore::Entry> entries) {
  std::vector<const ParameterStore::Entry*> given;
  given.reserve(entries.size());
  for (const ParameterStore::Entry& entry : entries) given.push_back(&entry);
  std::ranges::sort(given, {}, &ParameterStore::Entry::name);
  return given;
}

// Runs all checks before the first write: weights that do not fit leave the model unchanged.
void store_all(Device& device, const std::vector<Slot>& slots, std::span<const ParameterStore::Entry> entries) {
  const std::vector<const ParameterStore::Entry*> given = by_name(entries);
  check_entries(slots, given);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    device.store(slots[i].kind, slots[i].dims, given[i]->values, slots[i].stored);
  }
}

template <typename Take>
void load_each(Device& device, std::vector<Slot> slots, const Take& take) {
  for (Slot& slot : slots) {
    std::vector<float> values(static_cast<std::size_t>(count_of(slot.dims)));
    device.load(slot.kind, slot.dims, slot.stored, values);
    take(ParameterStore::Entry{std::string(slot.name), std::move(slot.dims), std::move(values)});
  }
}

std::vector<ParameterStore::Entry> load_all(Device& device, std::vector<Slot> slots) {
  std::vector<ParameterStore::Entry> entries;
  load_each(device, std::move(slots), [&](ParameterStore::Entry entry) { entries.push_back(std::move(entry)); });
  return entries;
}

}  // namespace

std::int64_t Parameter::count() const { return count_of(dims); }

Parameter& ParameterStore::add(std::string name, std::vector<std::int64_t> dims, ParameterKind kind, ParameterRole role,
                               Initial initial) {
  assert(!gradient_buffer_);  // fails if the arrays are already laid out
  const int index = static_cast<int>(parameters_.size());
  const std::int64_t stored = device_.stored_count(kind, dims);
  parameters_.push_back({std::move(name), std::move(dims), kind, role, initial, index, 0, stored, {}, {}});
  return parameters_.back();
}

Statistic& ParameterStore::add_statistic(std::string name, std::int64_t channels, float initial) {
  assert(!gradient_buffer_);
  const std::int64_t dims[] = {channels};
  const std::int64_t stored = device_.stored_count(ParameterKind::channel_vector, dims);
  statistics_.push_back({std::move(name), channels, initial, statistics_count(), stored, {}, {}});
  return statistics_.back();
}

std::int64_t ParameterStore::gradient_count() const { return padded_sum(parameters_); }
std::int64_t ParameterStore::statistics_count() const { return padded_sum(statistics_); }
std::int64_t ParameterStore::gradient_buffer_count() const {
  return gradient_count() + statistics_count() + metric_slot_count;
}

void ParameterStore::allocate(const Tensor& reduced, const Tensor& values) {
  assert(reduced.shape() == Shape{gradient_buffer_count()} && !gradient_buffer_);
  gradient_buffer_ = reduced;
  values_ = values ? values : device_.make_persistent(gradient_count(), DType::f32);
  running_ = device_.make_persistent(statistics_count(), DType::f32);

  std::int64_t offset = 0;
  for (Parameter& parameter : std::views::reverse(parameters_)) {
    parameter.offset = offset;
    parameter.value = values_.slice(offset, parameter.stored);
    parameter.gradient = gradient_buffer_.slice(offset, parameter.stored);
    offset += padded(parameter.stored);
  }
  const Tensor batch = batch_statistics();
  for (Statistic& statistic : statistics_) {
    statistic.running = running_.slice(statistic.offset, statistic.stored);
    statistic.batch = batch.slice(statistic.offset, statistic.stored);
    const std::int64_t dims[] = {statistic.channels};
    const std::vector<float> initial(static_cast<std::size_t>(statistic.channels), statistic.initial);
    device_.store(ParameterKind::channel_vector, dims, initial, statistic.running);
  }
}

void ParameterStore::update_running_statistics(const StepRecord& record) {
  device_.flat().average(batch_statistics(), statistics_momentum_, running_, record);
}

std::vector<ParameterStore::Entry> ParameterStore::entries() const { return entries_of(values_, running_); }

std::vector<ParameterStore::Entry> ParameterStore::entries_of(const Tensor& values, const Tensor& running) const {
  return load_all(device_, slots_by_name(parameters_, values, statistics_, running));
}

std::string ParameterStore::misfit(std::span<const Entry> entries) const {
  return compare(slots_by_name(parameters_, values_, statistics_, running_), by_name(entries)).text();
}

std::vector<std::string> ParameterStore::names() const {
  std::vector<std::string> names;
  for (const Slot& slot : slots_by_name(parameters_, values_, statistics_, running_)) names.emplace_back(slot.name);
  return names;
}

void ParameterStore::visit(const Tensor& values, const Tensor& running, const TakeEntry& take) const {
  load_each(device_, slots_by_name(parameters_, values, statistics_, running), take);
}

void ParameterStore::assign_to(const Tensor& values, const Tensor& running, std::span<const Entry> entries) {
  store_all(device_, slots_by_name(parameters_, values, statistics_, running), entries);
}

std::vector<ParameterStore::Entry> ParameterStore::entries_of(const Tensor& array) const {
  return load_all(device_, slots_in(array, parameters_));
}

void ParameterStore::visit(const Tensor& array, const TakeEntry& take) const {
  load_each(device_, slots_in(array, parameters_), take);
}

void ParameterStore::assign_to(const Tensor& array, std::span<const Entry> entries) {
  store_all(device_, slots_in(array, parameters_), entries);
}

std::string weights_hash(std::span<const NamedValues> entries) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  XXH3_64bits_reset(state.get());
  for (const NamedValues& entry : entries) {
    // The terminating zero separates a name from the dims after it.
    XXH3_64bits_update(state.get(), entry.name.c_str(), entry.name.size() + 1);
    XXH3_64bits_update(state.get(), entry.dims.data(), entry.dims.size() * sizeof(entry.dims[0]));
    XXH3_64bits_update(state.get(), entry.values.data(), entry.values.size() * sizeof(float));
  }
  return fmt::format("{:016x}", XXH3_64bits_digest(state.get()));
}

std::int64_t ParameterStore::parameter_count() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters_) count += parameter.count();
  return count;
}

}  // namespace lockstep
