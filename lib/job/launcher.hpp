// Who started this process, as the environment tells before MPI is up.
#pragma once

#include <optional>
#include <string>

namespace lockstep {

// The launcher that made this process a rank: "mpirun", "srun" or "a PMI launcher". Empty where a user or a script
// started it as a plain program, a batch script of Slurm's included.
std::optional<std::string> launcher_here();

}  // namespace lockstep
