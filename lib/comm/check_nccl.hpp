// Conversion of NCCL's error codes to exceptions.
#pragma once

#include <nccl.h>

#include <source_location>
#include <string_view>

#include "base/error.hpp"

namespace lockstep {

// Throws Error if an NCCL call failed. `task` completes the sentence "NCCL could not ...". On a nonblocking
// communicator ncclInProgress means that the call has not finished: use NcclCommunicator::complete().
inline void check_nccl(ncclResult_t code, std::string_view task,
                       std::source_location at = std::source_location::current()) {
  if (code == ncclSuccess) return;
  throw Error(fmt::format("NCCL could not {}: {} ({}) [{}:{}]. Run again with NCCL_DEBUG=INFO.", task,
                          ncclGetErrorString(code), ncclGetLastError(nullptr), at.file_name(), at.line()));
}

}  // namespace lockstep
