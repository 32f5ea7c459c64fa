// The numbers of ImageNet's classes, from meta.mat of the development kit (MATLAB 5: a list `synsets` of ILSVRC2012_ID,
// WNID, ...).
//
// libmatio crashes on some damaged files. So a helper process reads the file, and its answer is checked line by line.
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
  std::optional<ClassNumbers> classes;  // none: the file was not read
  std::optional<Error> fault;           // in place of the classes
};

// By libmatio, in this process: for the helper. Throws Error(usage) where the file cannot be read, Error(bad_data)
// where it is no such list.
ClassNumbers read_meta_mat(const std::filesystem::path& file);

// The helper's first argument; the second is the file.
inline constexpr const char* meta_mat_command = "--read-meta-mat";
// The helper's main: prints the classes, or the fault. Returns its exit code.
int print_meta_mat(const std::filesystem::path& file);

// Before MPI starts, in a program whose main gives meta_mat_command to print_meta_mat().
MetaMat read_meta_mat_by_helper(const std::filesystem::path& file);
// What the helper answered. Trusts none of it.
MetaMat meta_mat_from(const HelperResult& helper, const std::filesystem::path& file);

// Whether this is a class's place in WordNet: a noun, and eight digits.
bool is_class_name(std::string_view name);

}  // namespace lockstep
