// Turns the SIGBUS of a truncated mapped file into a message and an exit code.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace lockstep {

// During its lifetime, a read of `mapped` beyond the end of the file (SIGBUS) terminates the program with exit code 65
// and the shard's name. Faults at other addresses go to the previous handler. Thread-safe.
class MappingGuard {
 public:
  MappingGuard(const std::filesystem::path& shard, std::span<const std::byte> mapped);
  ~MappingGuard();
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;

  bool covers(const void* address) const;
  // Terminates the program. Async-signal-safe, so its message is composed in advance.
  [[noreturn]] void end_program() const;
  const MappingGuard* next() const { return next_; }

 private:
  std::span<const std::byte> mapped_;
  std::string sentence_;
  std::string line_;  // the message with the prefix of base/log
  MappingGuard* next_ = nullptr;
};

}  // namespace lockstep
