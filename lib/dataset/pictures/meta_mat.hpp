// ImageNet's class numbers from the development kit's meta.mat (MATLAB 5: a list `synsets` of ILSVRC2012_ID, WNID,
// ...).
//
// libmatio crashes on some damaged files. So a helper process reads the file, and the caller checks its answer line by
// line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/helper_process.hpp"

namespace lockstep {

using ClassNumbers = std::map<std::int64_t, std::string>;

struct MetaMat {
  std::optional<ClassNumbers> classes;  // unset: the file was not read
  std::optional<Error> fault;           // set instead of the classes if reading failed
};

// Reads the file with libmatio in this process; for the helper. Throws Error(usage) if the file cannot be read,
// Error(bad_data) if it does not contain such a list.
ClassNumbers read_meta_mat(const std::filesystem::path& file);

// First argument of the helper; the second is the file.
inline constexpr const char* meta_mat_command = "--read-meta-mat";
// The helper's main function: prints the classes or the error. Returns the exit code.
int print_meta_mat(const std::filesystem::path& file);

// Runs the helper. Call before MPI starts, in a program whose main passes meta_mat_command to print_meta_mat().
MetaMat read_meta_mat_by_helper(const std::filesystem::path& file);
// Parses the helper's answer, and validates all of it.
MetaMat meta_mat_from(const HelperResult& helper, const std::filesystem::path& file);

// Whether this is a WordNet ID: a letter n and eight digits.
bool is_class_name(std::string_view name);

}  // namespace lockstep
