// The MPI datatypes of gradient elements.
#pragma once

#include <mpi.h>

#include "device/tensor.hpp"

namespace lockstep {

inline MPI_Datatype mpi_type(DType dtype) { return dtype == DType::i64 ? MPI_INT64_T : MPI_FLOAT; }

}  // namespace lockstep
