// Makes values of a YAML tree, and converts them to JSON and back.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "slurm/submit/yaml.hpp"

namespace lockstep {

YamlValue yaml_text(std::string text, int line);
YamlValue yaml_map(int line);  // empty
YamlValue yaml_map(const std::string& key, const YamlValue& value);

// Without lines. Texts stay texts.
nlohmann::json json_of(const YamlValue& value);
// The inverse: values without a line. A number or a truth value becomes nothing.
YamlValue yaml_of(const nlohmann::json& json);

}  // namespace lockstep
