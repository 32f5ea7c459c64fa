// Experiment files of Determined as search files: from the tree of the one to the tree of the other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/space/space_reader.hpp"
#include "slurm/submit/yaml.hpp"

namespace lockstep {

// What the command line states in place of a file's `program` and `arguments`.
struct StatedCommand {
  std::optional<std::string> program = {};
  std::optional<std::string> arguments = {};  // words, separated by blanks
};

struct TranslatedName {
  int line = 0;
  std::string there;  // "searcher.max_time"
  std::string here;   // "searcher.max_length: {batches: 100}"
};

struct Translation {
  YamlValue search_file;
  std::vector<TranslatedName> names;  // fields with another name or value, in file order
  std::vector<std::string> notes;     // for the user
  std::vector<std::string> warnings;  // about fields without effect
};

// Whether a file has a field that only experiment files have, and no `program`.
bool is_experiment_file(const YamlValue& root);

// The search file that means the same as the experiment file `root`. Fields that have no counterpart, but would change
// results, become refusals of the reader. The translation is then incomplete, and only good for further refusals.
Translation translate_experiment(const YamlValue& root, const StatedCommand& stated, SpaceReader& reader);

// The names as a table; empty without any.
std::string translation_text(const Translation& translation);

}  // namespace lockstep
