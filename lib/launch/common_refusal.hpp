// Ends a job cleanly if all ranks refuse it for the same reason: an option, a folder, a model that does not fit, or a
// condition for resuming.
//
// A rank that throws does not unwind its stack, because destructors may wait for ranks that never arrive. A single rank
// has to call MPI_Abort, and mpirun then prints long messages. If all ranks refuse within one second, MPI is finalized
// and each rank exits with its code.
#pragma once

#include "comm/communicator.hpp"
#include "runtime/stop/process_signals.hpp"

namespace lockstep::common_refusal {

// Collective. Called by the main thread after MPI has started. `signals` and the prepared state must live until MPI is
// finalized.
void prepare(const Communicator& world, ProcessSignals& signals);
void forget();  // collective; call it before MPI is finalized

// Called by the terminate handler. Returns true if all ranks have called it: MPI is then finalized, and the caller
// exits with `code`. Takes at most one second to decide. If MPI does not finalize within five more, it exits with
// `code` itself.
bool all_end(int code);

}  // namespace lockstep::common_refusal
