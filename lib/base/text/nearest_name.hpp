// Suggestions for misspelled names of options, commands and values.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// The nearest of `names` by edit distance: insertions, deletions, replacements, and exchanges of neighboring letters.
// The first one wins ties. Empty if more than one edit and more than a third of the word's letters would be needed, or
// if the word is the name and more words after a dash.
std::string nearest_name(std::string_view word, std::span<const std::string> names);

// "Did you mean cosine? ", or nothing if no name is near. Ends in a space, so that text can follow.
std::string did_you_mean(std::string_view word, std::span<const std::string> names);

}  // namespace lockstep
