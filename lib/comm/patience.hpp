// Waiting for other ranks without taking their cores.
#pragma once

#include <mpi.h>

#include <string_view>

namespace lockstep {

// Waits for a nonblocking MPI operation: tests at once and for a few microseconds, then sleeps between looks, up to a
// millisecond, so that ranks waiting for one that works leave it the machine. `task` as in check_mpi.
void wait_patiently(MPI_Request& request, std::string_view task);

}  // namespace lockstep
