// What a rank says when it crashes: failure.json and one sentence, then the signal takes its course.
#pragma once

namespace lockstep {

// For SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, on a stack of its own. Call once, after MPI has started.
void install_crash_handlers();

}  // namespace lockstep
