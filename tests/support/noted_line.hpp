// The file in which tests find what happened in a program, in order.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace lockstep {

// Appends "<thread> <text>" to the file that LOCKSTEP_NOTED_RANGES names, if it is set. Thread-safe: a line is one
// write at the end of the file.
inline void note_line(std::string_view text) {
  static const char* const path = std::getenv("LOCKSTEP_NOTED_RANGES");
  if (path == nullptr) return;
  static const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string line = fmt::format("{} {}\n", gettid(), text);
  if (write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
}

}  // namespace lockstep
