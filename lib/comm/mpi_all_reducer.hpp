// Exchange through MPI collectives: any number of nodes, no requirements on memory.
#pragma once

#include <memory>

#include "comm/all_reducer.hpp"

namespace lockstep {

std::unique_ptr<AllReducer> make_mpi_all_reducer(const Communicator& world);

}  // namespace lockstep
