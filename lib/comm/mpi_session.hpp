// MPI from start to end of a program.
//
// Without a launcher the program is one rank, and no helper process is started.
#pragma once

namespace lockstep {

// Initialises MPI for calls from the main thread (MPI_THREAD_FUNNELED) and makes errors return codes, for check_mpi.
// One at a time; the destructor finalises, which is collective. A failing rank of several never gets there: see run().
class MpiSession {
 public:
  MpiSession(int& argc, char**& argv);
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  ~MpiSession();
};

}  // namespace lockstep
