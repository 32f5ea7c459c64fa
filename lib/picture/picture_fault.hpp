// Why a file cannot be decoded or used, for the list of odd files.
#pragma once

#include <stdexcept>
#include <string>

namespace lockstep {

// The message completes the sentence "it ...", such as "is truncated".
class PictureFault : public std::runtime_error {
 public:
  explicit PictureFault(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace lockstep
