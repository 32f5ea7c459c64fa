#include "search/search_file.hpp"

#include "base/io/file.hpp"
#include "search/space/space_reader.hpp"

namespace lockstep {
namespace {

void replace(YamlValue& root, const std::string& field, const std::optional<std::string>& stated) {
  if (!stated || root.kind != YamlValue::Kind::map) return;
  std::erase_if(root.entries, [&](const YamlEntry& entry) { return entry.key == field; });
  root.entries.push_back({field, 0, stated_text(*stated)});
}

}  // namespace

SearchFile read_search_file(const std::filesystem::path& file, const StatedCommand& stated) {
  SpaceReader reader(file.string());
  YamlValue root = parse_yaml(read_start(file, yaml_limits::bytes + 1), reader.file(), space_files);
  SearchFile result;
  if (is_experiment_file(root)) {
    result.translation = translate_experiment(root, stated, reader);
    root = result.translation.search_file;
  } else {
    replace(root, "program", stated.program);
    replace(root, "arguments", stated.arguments);
  }
  result.space = read_space(root, reader);
  reader.throw_refusals();
  return result;
}

}  // namespace lockstep
