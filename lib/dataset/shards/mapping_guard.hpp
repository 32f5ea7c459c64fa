// Gives the fault of a file that shrank under its mapping a sentence and an exit code.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace lockstep {

// While it lives, a read of `mapped` that finds no file behind it (SIGBUS) ends the program with code 65 and the
// shard's name. Faults elsewhere go to whoever handled them before. Thread-safe.
class MappingGuard {
 public:
  MappingGuard(const std::filesystem::path& shard, std::span<const std::byte> mapped);
  ~MappingGuard();
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;

  bool covers(const void* address) const;
  // Ends the program. Async-signal-safe, so its words were made before.
  [[noreturn]] void end_program() const;
  const MappingGuard* next() const { return next_; }

 private:
  std::span<const std::byte> mapped_;
  std::string sentence_;
  std::string line_;  // as base/log would print it
  MappingGuard* next_ = nullptr;
};

}  // namespace lockstep
