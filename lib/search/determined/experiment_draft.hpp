// The search file that a translation of an experiment file writes, field by field.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "search/determined/experiment_file.hpp"
#include "search/space/space_reader.hpp"
#include "search/space/yaml_values.hpp"
#include "slurm/submit/yaml.hpp"

namespace lockstep {

class ExperimentDraft {
 public:
  // The objects live as long as this one.
  ExperimentDraft(const YamlValue& root, const StatedCommand& stated, SpaceReader& reader);

  SpaceReader& reader() { return reader_; }

  // The value of a field of the experiment file, such as "searcher.metric". Null if it is missing or null.
  const YamlValue* find(std::string_view path) const;
  // The line of that value; of the file if there is none.
  int line_of(std::string_view path) const;

  // Sets a field of the search file, such as "seed" or "searcher.metric".
  void set(std::string_view path, YamlValue value);
  void add_name(int line, std::string_view there, std::string_view here);
  // Adds an option to the arguments, unless --arguments states it.
  void add_argument(int line, std::string_view there, std::string_view option, std::string_view value);
  bool has_argument(std::string_view option) const;  // without dashes
  void add_note(int line, std::string_view text);
  void add_warning(int line, std::string_view text);

  Translation finish();

 private:
  const YamlValue& root_;
  SpaceReader& reader_;
  std::vector<std::string> arguments_;
  Translation result_;
};

}  // namespace lockstep
