// Conversion of MPI's error codes to exceptions.
#pragma once

#include <mpi.h>

#include <source_location>
#include <string_view>

#include "base/error.hpp"

namespace lockstep {

// Throws Error if an MPI call failed. `task` completes the sentence "MPI could not ...". Requires MPI_ERRORS_RETURN,
// which MpiSession sets: by default MPI ends the job without a message.
inline void check_mpi(int code, std::string_view task, std::source_location at = std::source_location::current()) {
  if (code == MPI_SUCCESS) return;
  char words[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, words, &length);
  throw Error(fmt::format("MPI could not {}: {} [{}:{}]", task,
                          std::string_view(words, static_cast<std::size_t>(length)), at.file_name(), at.line()));
}

}  // namespace lockstep
