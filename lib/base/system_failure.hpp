// Errors of the system in words, with what to try: the same errno wants the same advice wherever it comes up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace lockstep {

enum class Access : std::uint8_t { reading, writing, shared_memory };

struct Remedy {
  Failure failure;  // whether trying again may help
  std::string_view advice;
};

// What to try after an errno value that came up while something on disk was read or written, or shared memory made.
Remedy remedy_for(int error_number, Access access);

// An error to throw: "<task>: <the system's words> (<why>). <advice>". `task` says what failed and names the file; the
// brackets are left out where there is nothing to say in them.
Error system_failure(std::string_view task, int error_number, Access access, std::string_view why = {});

}  // namespace lockstep
