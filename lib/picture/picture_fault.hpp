// Why a file is no picture, or none that can be used: words for a list of such files.
#pragma once

#include <stdexcept>
#include <string>

namespace lockstep {

// "ends too early". The words complete the sentence "it ...".
class PictureFault : public std::runtime_error {
 public:
  explicit PictureFault(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace lockstep
