// The name that somebody meant who wrote another one: of options, commands and values.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// The nearest of `names` by edits: letters put in, left out, replaced, or exchanged with their neighbour. Of equally
// near ones the first. Empty where a third of the word's letters would have to change, and more than one: that is no
// misspelling.
std::string nearest_name(std::string_view word, std::span<const std::string> names);

// "Did you mean cosine? ", or nothing where no name is near. Stands before words that go on.
std::string did_you_mean(std::string_view word, std::span<const std::string> names);

}  // namespace lockstep
