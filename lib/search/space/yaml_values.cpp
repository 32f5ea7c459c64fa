#include "search/space/yaml_values.hpp"

#include <utility>

namespace lockstep {

YamlValue yaml_text(std::string text, int line) {
  YamlValue value;
  value.kind = YamlValue::Kind::text;
  value.line = line;
  value.text = std::move(text);
  return value;
}

YamlValue yaml_map(int line) {
  YamlValue value;
  value.kind = YamlValue::Kind::map;
  value.line = line;
  return value;
}

YamlValue yaml_map(const std::string& key, const YamlValue& value) {
  YamlValue map = yaml_map(value.line);
  map.entries.push_back({key, value.line, value});
  return map;
}

nlohmann::json json_of(const YamlValue& value) {
  switch (value.kind) {
    case YamlValue::Kind::nothing:
      return nullptr;
    case YamlValue::Kind::text:
      return value.text;
    case YamlValue::Kind::list: {
      nlohmann::json items = nlohmann::json::array();
      for (const YamlValue& item : value.items) items.push_back(json_of(item));
      return items;
    }
    default: {
      nlohmann::json entries = nlohmann::json::object();
      for (const YamlEntry& entry : value.entries) entries[entry.key] = json_of(entry.value);
      return entries;
    }
  }
}

YamlValue yaml_of(const nlohmann::json& json) {
  YamlValue value;
  if (json.is_string()) {
    value.kind = YamlValue::Kind::text;
    value.text = json.get<std::string>();
  } else if (json.is_array()) {
    value.kind = YamlValue::Kind::list;
    for (const nlohmann::json& item : json) value.items.push_back(yaml_of(item));
  } else if (json.is_object()) {
    value.kind = YamlValue::Kind::map;
    for (const auto& [key, entry] : json.items()) value.entries.push_back({key, 0, yaml_of(entry)});
  }
  return value;
}

}  // namespace lockstep
