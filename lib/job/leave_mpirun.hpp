// Lets a process that mpirun started start programs of its own that are no ranks of the same job.
#pragma once

#include <string_view>

namespace lockstep {

// Whether Open MPI's mpirun (4 or 5) sets the variable for its ranks. Users' own settings (OMPI_MCA_btl_...) are not.
bool is_of_mpirun(std::string_view variable);

// Removes these variables from the environment. No other thread may run. this_job() keeps its answers.
void leave_mpirun();

}  // namespace lockstep
