// How ranks end that all refuse alike: an option, a folder, a model that does not fit, a rule of resuming.
//
// A rank that throws unwinds nothing, because destructors may wait for ranks that do not come. Alone it has to call
// MPI_Abort, of which mpirun prints much. Where all ranks of the job come to a refusal within a second, MPI ends in
// order and each rank exits with its code.
#pragma once

#include "comm/communicator.hpp"
#include "runtime/stop/process_signals.hpp"

namespace lockstep::common_refusal {

// Collective, by the main thread, once MPI has started. `signals` lives until MPI is finalised, and so does what is
// prepared here.
void prepare(const Communicator& world, ProcessSignals& signals);
void forget();  // collective; before MPI is finalised

// From the terminate handler. Returns whether all ranks have come here: MPI is then finalised, and the caller exits
// with `code`. Takes a second at most, and five more where MPI does not finalise: then it exits with `code` itself.
bool all_end(int code);

}  // namespace lockstep::common_refusal
