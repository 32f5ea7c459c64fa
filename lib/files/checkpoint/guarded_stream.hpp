// A file that one rank writes while others take part: if it fails, the others must not wait for it, so it takes part to
// the end without writing.
#pragma once

#include <exception>
#include <optional>
#include <utility>

#include "base/io/file.hpp"

namespace lockstep {

// `Stream` writes to a file piece by piece. It is there only on the rank that writes, until it fails.
template <class Stream>
class GuardedStream {
 public:
  // Makes a Stream(*file, arguments...). nullptr: this rank writes nothing.
  template <class... Arguments>
  explicit GuardedStream(UnpublishedFile* file, Arguments&&... arguments) {
    if (file != nullptr) guard([&] { stream_.emplace(*file, std::forward<Arguments>(arguments)...); });
  }

  // Calls `work(stream)`, unless this rank writes nothing or has failed. Keeps its exception.
  template <class Work>
  void write(const Work& work) {
    if (stream_) guard([&] { work(*stream_); });
  }

  // Throws the exception that was kept.
  void require_written() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  template <class Work>
  void guard(const Work& work) {
    try {
      work();
    } catch (...) {
      failure_ = std::current_exception();
      stream_.reset();
    }
  }

  std::optional<Stream> stream_;
  std::exception_ptr failure_;
};

}  // namespace lockstep
