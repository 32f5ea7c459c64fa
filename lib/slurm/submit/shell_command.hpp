// What a simple command of bash does with its words.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

enum class WordUse : std::uint8_t {
  reads,     // a program or builtin that is known to run nothing of its words and of its input
  stores,    // assigns its words to variables
  computes,  // may do arithmetic with its words
  nothing,   // only keywords, such as `done`
  unknown,   // any other command may run its words or its input
};

// The command's words are separated by spaces, and contain none. A word that begins with '<' or '>' is a redirection.
// '?' stands for a value that is to be inserted.
WordUse word_use(const std::string& command);

// Whether the command may evaluate the contents of variables that its words name, as arithmetic, names or code.
bool may_evaluate_variables(const std::string& command);

}  // namespace lockstep
