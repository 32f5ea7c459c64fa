// How long a process takes to its first training step, with and without kernel choices of an earlier run.
#pragma once

namespace lockstep {

// Whether the command line has --first-step.
bool asks_for_first_step(int argc, char** argv);

// Starts this program twice more, with the same options: where no kernel was chosen yet, and with what the first start
// chose. Prints one JSON line and returns an exit code. For one rank, started without a launcher.
int time_first_steps(int argc, char** argv);

}  // namespace lockstep
