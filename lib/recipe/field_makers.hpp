// Helpers for the table of fields: common ranges, and modifiers of an entry.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "recipe/field_forms.hpp"

namespace lockstep {

// Limit of real numbers: above any realistic quantity, and small enough that products do not overflow.
constexpr double largest = 1e9;
constexpr NumberForm<double> above_zero{{0, largest, LeastIs::excluded}};
constexpr NumberForm<double> from_zero{{0, largest}};
constexpr std::int64_t max_samples = std::int64_t{1} << 31;
constexpr NumberForm<std::int64_t> any_count{{1, max_samples}};
constexpr NumberForm<std::int64_t> any_count_or_none{{0, max_samples}};
constexpr ChosenNumberForm chosen(std::int64_t least, std::int64_t most) { return {{{least, most}}}; }
template <typename Number>
constexpr NumberForm<Number> from_to(Number least, Number most) {
  return {{least, most}};
}
template <typename Choices>
ChoiceForm<Choices> one_of(const Choices& choices) {
  return {choices};
}

inline Field may_change(Field field) {
  field.on_resume = Field::OnResume::may_change;
  return field;
}

// For new options: checkpoints of trainings without the option are those of versions that did not know it, byte for
// byte.
inline Field recorded_if_set(Field field) {
  field.is_recorded_unset = false;
  return field;
}

// One of the options that --help lists without being asked for more.
inline Field common(Field field) {
  field.is_common = true;
  return field;
}

inline Field required(Field field) {
  field.is_required = true;
  return field;
}

// "3,5" means the same as "3 5".
inline Field comma_separated(Field field) {
  field.separator = ',';
  return field;
}

inline Field also_called(Field field, const char* name) {
  field.also = name;
  return field;
}

inline Field needs(Field field, const char* other) {
  field.needs = other;
  return field;
}

// The field is used only if `chooser` has one of these values.
inline Field read_by(Field field, const char* chooser, std::vector<std::string> values) {
  field.chooser = chooser;
  field.readers = std::move(values);
  return field;
}

// Reports the field as unset if its default yields to another field.
inline Field unstated_where(Field field, const std::function<bool(const Settings&)>& gives_way) {
  field.texts = [texts = std::move(field.texts), gives_way](const Settings& settings) {
    return gives_way(settings) ? std::vector<std::string>() : texts(settings);
  };
  return field;
}

// Setting this field unsets the option `other`, which sets the same thing and may have a default.
inline Field instead_of(Field field, const char* other, const std::function<void(Settings&)>& unset) {
  field.excludes = other;
  field.set = [set = std::move(field.set), unset](Settings& settings, const std::vector<std::string>& texts) {
    if (!texts.empty()) unset(settings);
    set(settings, texts);
  };
  return field;
}

}  // namespace lockstep
