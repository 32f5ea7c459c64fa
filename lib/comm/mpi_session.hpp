// Initialization and finalization of MPI.
//
// Without a launcher the program is one rank, and MPI starts no helper process.
#pragma once

namespace lockstep {

// Initializes MPI for calls from the main thread (MPI_THREAD_FUNNELED) and makes errors return codes, for check_mpi. At
// most one exists. The destructor finalizes MPI, which is collective. If one of several ranks fails, it never reaches
// the destructor: see run().
class MpiSession {
 public:
  MpiSession(int& argc, char**& argv);
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  ~MpiSession();
};

}  // namespace lockstep
