// Whole arrays of a training that reads them block by block.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/streamed_array.hpp"

namespace lockstep::test {

// Collective if reading them is. By name, on rank 0; elsewhere their values are undefined.
inline std::map<std::string, std::vector<float>> read_all(std::span<const StreamedArray> arrays) {
  std::map<std::string, std::vector<float>> all;
  for (const StreamedArray& array : arrays) {
    std::vector<float>& values = all[array.name];
    read_blocks(array, [&](std::span<const float> block) { values.insert(values.end(), block.begin(), block.end()); });
  }
  return all;
}

}  // namespace lockstep::test
