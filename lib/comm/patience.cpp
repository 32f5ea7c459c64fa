#include "comm/patience.hpp"

#include "comm/check_mpi.hpp"

namespace lockstep {

void wait_with_backoff(MPI_Request& request, std::string_view task) {
  poll_with_backoff([&] {
    int complete = 0;
    check_mpi(MPI_Test(&request, &complete, MPI_STATUS_IGNORE), task);
    return complete != 0;
  });
}

}  // namespace lockstep
