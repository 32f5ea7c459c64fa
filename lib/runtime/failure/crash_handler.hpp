// The handlers for crashes: they write failure.json, print one sentence, then let the signal take its default effect.
#pragma once

namespace lockstep {

// Handles SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT on an alternate stack. Call once, after MPI has started.
void install_crash_handlers();

}  // namespace lockstep
