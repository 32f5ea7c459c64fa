#include "slurm/retry/pattern.hpp"

#include <array>

namespace lockstep {

Pattern::Pattern(const std::string& text) : code_(::regcomp(&regex_, text.c_str(), REG_EXTENDED | REG_NOSUB)) {}

Pattern::~Pattern() {
  if (code_ == 0) ::regfree(&regex_);
}

std::string Pattern::mistake() const {
  if (code_ == 0) return "";
  std::array<char, 200> words{};
  ::regerror(code_, &regex_, words.data(), words.size());
  return words.data();
}

bool Pattern::matches(const std::string& line) const {
  return code_ == 0 && ::regexec(&regex_, line.c_str(), 0, nullptr, 0) == 0;
}

}  // namespace lockstep
