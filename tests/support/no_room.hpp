// A disk that is full, as far as this process can tell.
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace lockstep {

// While it lives no file of this process grows beyond so many bytes: what a disk that fills up does to it.
class NoRoomBeyond {
 public:
  explicit NoRoomBeyond(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  NoRoomBeyond(const NoRoomBeyond&) = delete;
  NoRoomBeyond& operator=(const NoRoomBeyond&) = delete;
  ~NoRoomBeyond() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  sighandler_t handler_;
};

}  // namespace lockstep
