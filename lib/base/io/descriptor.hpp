// A file descriptor that closes itself.
#pragma once

#include <unistd.h>

#include <utility>

namespace lockstep {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  // Implicit, so that it can be passed to system calls.
  operator int() const { return number_; }  // NOLINT(google-explicit-constructor)
  // False, with errno, if earlier writes failed: network file systems report an exceeded quota only here.
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

}  // namespace lockstep
