// What main does in a program that trains. Such programs differ in what they start with: their settings are the
// defaults of their options.
#pragma once

#include <string>

#include "recipe/run_options.hpp"

namespace lockstep {

// What --help says before and after the options.
struct TrainingHelp {
  std::string description;
  std::string examples;  // a command a line
};

// Takes the options of a training, trains, and returns the program's exit code. First thing in main, before MPI: with
// --gpus the program starts itself anew, a rank for each GPU.
int run_training(int argc, char** argv, const TrainingHelp& help, Settings settings);

}  // namespace lockstep
