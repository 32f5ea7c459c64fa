// Messages for system errors, with advice on what to try. The same errno gives the same advice everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace lockstep {

enum class Access : std::uint8_t { reading, writing, shared_memory };

struct Remedy {
  Failure failure;  // tells whether a retry may help
  std::string_view advice;
};

// The advice for an errno value from reading or writing on disk, or from creating shared memory.
Remedy remedy_for(int error_number, Access access);

// An error to throw: "<task>: <the system's message> (<why>). <advice>". `task` says what failed and names the file. If
// `why` is empty, the parentheses are left out.
Error system_failure(std::string_view task, int error_number, Access access, std::string_view why = {});

}  // namespace lockstep
