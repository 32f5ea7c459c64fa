// Measures the time from process start to the first training step, with and without the kernel choices of an earlier
// run.
#pragma once

namespace lockstep {

// Whether the command line contains --first-step.
bool asks_for_first_step(int argc, char** argv);

// Starts this program twice with the same options: without stored kernel choices, and with those of the first start.
// Prints one JSON line and returns an exit code. For one rank, started without a launcher.
int time_first_steps(int argc, char** argv);

}  // namespace lockstep
