// A study for a terminal: a table for each kind of scaling, what it finds, and how well it was predicted.
#pragma once

#include <string>

#include "scaling/study.hpp"

namespace lockstep {

// Lines without a new line at the end. Names of unknown origin in it are printable.
std::string study_table(const Study& study);
std::string study_sentences(const Study& study);

}  // namespace lockstep
