// MPI that cannot find the ranks of a node, as over a network that is not there: loaded before the libraries of a
// program (LD_PRELOAD).
#include <mpi.h>

extern "C" int MPI_Comm_split_type(MPI_Comm /*from*/, int /*type*/, int /*key*/, MPI_Info /*info*/,
                                   MPI_Comm* /*made*/) {
  return MPI_ERR_INTERN;
}
