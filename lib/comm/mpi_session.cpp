#include "comm/mpi_session.hpp"

#include <mpi.h>

#include <cstdlib>

#include "comm/check_mpi.hpp"
#include "job/job_environment.hpp"

namespace lockstep {

MpiSession::MpiSession(int& argc, char**& argv) {
  // For a single process, Open MPI 4.1 starts a daemon that could spawn others. It takes 0.1 s, and fails for root.
  // Also, all single processes of a node share one folder in /tmp: one that ends removes it while another starts.
  if (!this_job().has_pmi) {
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    setenv("OMPI_MCA_orte_create_session_dirs", "0", 0);
  }
  // If the connection to a rank on another node breaks, Open MPI 5 calls no error handler and ends this rank with code
  // 14 (ompi/mca/pml/ob1: mca_pml_ob1_error_handler). The delay lets the watcher report the cause first.
  if (this_job().slurm && this_job().slurm->nodes.value_or(1) > 1) setenv("OMPI_MCA_mpi_abort_delay", "1", 0);
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided), "start");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "make its errors return");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), "make its errors return");
  require(provided >= MPI_THREAD_FUNNELED, Failure::bad_node,
          "MPI does not support threads besides the one that communicates (level {}). Use an MPI built with thread "
          "support.",
          provided);
}

MpiSession::~MpiSession() { MPI_Finalize(); }

}  // namespace lockstep
