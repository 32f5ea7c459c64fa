// A POSIX extended regular expression.
#pragma once

#include <regex.h>

#include <string>

namespace lockstep {

class Pattern {
 public:
  explicit Pattern(const std::string& text);
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  ~Pattern();

  // The error message; empty if the pattern is valid.
  std::string mistake() const;
  // Whether a part of the line matches. False if the pattern is not valid.
  bool matches(const std::string& line) const;

 private:
  regex_t regex_{};
  int code_;
};

}  // namespace lockstep
