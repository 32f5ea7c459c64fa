// The main function of training programs. They differ only in their initial settings, which are the defaults of their
// options.
#pragma once

#include <string>

#include "recipe/run_options.hpp"

namespace lockstep {

// The text before and after the options in --help.
struct TrainingHelp {
  std::string description;
  std::string examples;  // one command per line
};

// Parses the options, trains, and returns the program's exit code. Call it first in main, before MPI starts: with
// --gpus, the program restarts itself with one rank for each GPU.
int run_training(int argc, char** argv, const TrainingHelp& help, Settings settings);

}  // namespace lockstep
