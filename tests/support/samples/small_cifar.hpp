// CIFAR-10's published files in miniature, as input for conversions.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "base/io/file.hpp"
#include "base/random.hpp"

namespace lockstep {

inline constexpr std::int64_t small_cifar_per_file = 20;

// One file of CIFAR's binary version: label bytes, then 3072 pixels, channel by channel.
inline std::string small_cifar_records(std::uint64_t file) {
  std::string bytes;
  for (std::uint64_t sample = 0; sample < small_cifar_per_file; ++sample) {
    bytes += static_cast<char>((file + sample) % 10);
    for (std::uint64_t i = 0; i < 3072; ++i) bytes += static_cast<char>(philox(file, sample, i)[0]);
  }
  return bytes;
}

inline void write_small_cifar(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (std::uint64_t file = 1; file <= 5; ++file) {
    write_file_atomically(folder / fmt::format("data_batch_{}.bin", file), small_cifar_records(file));
  }
  write_file_atomically(folder / "test_batch.bin", small_cifar_records(6));
}

}  // namespace lockstep
