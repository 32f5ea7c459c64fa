// Runs a role's command in a container.
//
// The job's folder, Lockstep's programs and the role's storages are mounted; the environment is passed on, with the
// programs in PATH. Apptainer and Charliecloud replace start_instance by the command in its container, so the command
// gets Slurm's signals, and its exit code counts. pyxis, a plugin of srun, puts start_instance itself into the
// container.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/roles/environment.hpp"
#include "slurm/roles/role.hpp"

namespace lockstep {

// Values of Container::program.
inline constexpr std::array<std::string_view, 3> container_programs = {"apptainer", "charliecloud", "pyxis"};

// Whether container programs take the text as a path: absolute, without ',', ':', '"', '\' and control characters.
bool is_mountable(std::string_view path);

// What a container gets from its node.
struct ContainerHost {
  std::string name;                           // of the node
  std::filesystem::path folder;               // the job's; the command starts there
  std::filesystem::path programs;             // Lockstep's
  std::vector<std::filesystem::path> others;  // mounted if they exist
};

// The words that run role.command in the role's container, on this node. Throws Error(usage) if a path cannot be
// mounted or the image is missing. Charliecloud cannot create the mount points in an image, so they are created here.
// With pyxis, these words run within the container.
std::vector<std::string> container_command(const Role& role, const ContainerHost& host);

// The last words of the srun command that starts start_instance, `program`, for tasks of the role. With pyxis, they
// begin with its options, and start the program with the node's own libraries, because the image has none of them.
// Throws as container_command().
std::vector<std::string> task_words(const Role& role, const ContainerHost& host, const std::string& program);

// Variables that a container needs besides: Charliecloud requires USER. Ranks in containers of their own cannot read
// each other's memory, which Open MPI would try.
Environment container_environment(const Role& role, const std::string& user);

}  // namespace lockstep
