#include "search/determined/experiment_draft.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "search/space/hyperparameter.hpp"

namespace lockstep {

ExperimentDraft::ExperimentDraft(const YamlValue& root, const StatedCommand& stated, SpaceReader& reader)
    : root_(root), reader_(reader), arguments_(words_in(stated.arguments.value_or(""))) {
  result_.search_file = yaml_map(root.line);
}

const YamlValue* ExperimentDraft::find(std::string_view path) const {
  const std::size_t point = path.find('.');
  const YamlValue* const value = find_value(root_, path.substr(0, point));
  return point == std::string_view::npos || value == nullptr ? value : find_value(*value, path.substr(point + 1));
}

int ExperimentDraft::line_of(std::string_view path) const {
  const YamlValue* const value = find(path);
  return value == nullptr ? root_.line : value->line;
}

void ExperimentDraft::set(std::string_view path, YamlValue value) {
  YamlValue* map = &result_.search_file;
  if (const std::size_t point = path.find('.'); point != std::string_view::npos) {
    const std::string_view section = path.substr(0, point);
    auto entry = std::ranges::find(map->entries, section, &YamlEntry::key);
    if (entry == map->entries.end()) {
      const int line = line_of(section);
      entry = map->entries.insert(entry, YamlEntry{std::string(section), line, yaml_map(line)});
    }
    map = &entry->value;
    path.remove_prefix(point + 1);
  }
  const int line = value.line;
  map->entries.push_back({std::string(path), line, std::move(value)});
}

void ExperimentDraft::add_name(int line, std::string_view there, std::string_view here) {
  result_.names.push_back({line, std::string(there), std::string(here)});
}

void ExperimentDraft::add_argument(int line, std::string_view there, std::string_view option, std::string_view value) {
  if (has_argument(option.substr(2))) return add_name(line, there, fmt::format("{}, as --arguments says", option));
  arguments_.emplace_back(option);
  arguments_.emplace_back(value);
  add_name(line, there, fmt::format("{} {}", option, value));
}

bool ExperimentDraft::has_argument(std::string_view option) const {
  return std::ranges::find(arguments_, option, option_of) != arguments_.end();
}

void ExperimentDraft::add_note(int line, std::string_view text) {
  result_.notes.push_back(yaml_place(reader_.file(), line) + std::string(text));
}

void ExperimentDraft::add_warning(int line, std::string_view text) {
  result_.warnings.push_back(yaml_place(reader_.file(), line) + std::string(text));
}

Translation ExperimentDraft::finish() {
  set("arguments", stated_text(fmt::format("{}", fmt::join(arguments_, " "))));
  std::ranges::stable_sort(result_.names, {}, &TranslatedName::line);
  return std::move(result_);
}

}  // namespace lockstep
