// A study for a terminal: a table for each kind of scaling, its findings, and the accuracy of its predictions.
#pragma once

#include <string>

#include "scaling/study.hpp"

namespace lockstep {

// The text has no final newline. Untrusted names in it are escaped.
std::string study_table(const Study& study);
std::string study_sentences(const Study& study);

}  // namespace lockstep
