#include "preflight/floors.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/printable.hpp"
#include "files/result_file.hpp"

namespace lockstep {
namespace {

struct FloorField {
  const char* name;
  double Floors::*value;
  double most;
};
constexpr double max_rate = 1e18;
constexpr std::array<FloorField, 7> floor_fields{{{"compute_share", &Floors::compute_share, 1},
                                                  {"link_share", &Floors::link_share, 1},
                                                  {"clock_seconds", &Floors::clock_seconds, 1e9},
                                                  {"samples_per_second", &Floors::samples_per_second, max_rate},
                                                  {"write_bytes_per_second", &Floors::write_bytes_per_second, max_rate},
                                                  {"read_bytes_per_second", &Floors::read_bytes_per_second, max_rate},
                                                  {"bus_bytes_per_second", &Floors::bus_bytes_per_second, max_rate}}};

constexpr std::string_view settings_name = "settings";

bool begins_as_floors(std::string_view start) { return start.starts_with("{\n \"bus_bytes_per_second\":"); }

double least(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

}  // namespace

Floors parse_floors(std::string_view text, const std::string& file) {
  const nlohmann::json json = try_parse_json(text);
  require(json.is_object(), Failure::usage,
          "'{}' is not a file of floors: it is not a JSON object. Write one with check_cluster --write-floors.", file);
  Floors floors;
  for (const auto& [name, value] : json.items()) {
    if (name == settings_name) {
      require(value.is_object(), Failure::usage,
              "'{}': '{}' is not a JSON object. Write the file again with check_cluster --write-floors.", file, name);
      floors.settings = value;
      continue;
    }
    const auto* const field =
        std::ranges::find_if(floor_fields, [&](const FloorField& one) { return name == one.name; });
    if (field == floor_fields.end()) {
      std::vector<std::string> names{std::string(settings_name)};
      for (const FloorField& one : floor_fields) names.emplace_back(one.name);
      throw Error(Failure::usage, fmt::format("'{}' has the unknown floor '{}'. {}Known: {}.", file, printable(name),
                                              did_you_mean(name, names), fmt::join(names, ", ")));
    }
    require(value.is_number() && value.get<double>() >= 0 && value.get<double>() <= field->most, Failure::usage,
            "'{}': the floor '{}' is not a number from 0 to {:g}.", file, name, field->most);
    floors.*(field->value) = value.get<double>();
  }
  return floors;
}

Floors read_floors(const std::filesystem::path& file) {
  constexpr std::size_t longest = 1 << 16;
  return parse_floors(read_file(file, longest), file.string());
}

Floors floors_below(const ClusterFacts& facts) {
  constexpr double share = 0.8;
  std::vector<double> computing;
  for (const RankFacts& rank : facts.ranks) computing.push_back(rank.samples_per_second);
  std::vector<double> writing;
  std::vector<double> reading;
  for (const NodeFacts& node : facts.nodes) {
    writing.push_back(node.folder.write_bytes_per_second);
    reading.push_back(node.folder.read_bytes_per_second);
  }
  Floors floors;
  floors.samples_per_second = share * least(computing);
  floors.write_bytes_per_second = share * least(writing);
  floors.read_bytes_per_second = share * least(reading);
  if (!facts.sums.empty()) {
    floors.bus_bytes_per_second = share * bus_bytes_per_second(facts.sums.back(), facts.ranks.size());
  }
  return floors;
}

std::string floors_text(const Floors& floors) {
  nlohmann::json json;
  for (const FloorField& field : floor_fields) json[field.name] = floors.*(field.value);
  if (!floors.settings.is_null()) json[settings_name] = floors.settings;
  return json_lines(json) + "\n";
}

void require_place_for_floors(const std::filesystem::path& file) {
  require_place_for_result(file, {"file of floors", begins_as_floors}, "--write-floors");
}

}  // namespace lockstep
