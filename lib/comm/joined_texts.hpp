// Texts of several ranks in one buffer, as the collectives of MPI exchange them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

// As MPI counts. Throws Error if they exceed 2 GiB.
int message_length(std::size_t bytes);
// The offset of each text in the concatenation of all. The last entry is the total length. Throws likewise.
std::vector<int> offsets_of(const std::vector<std::uint64_t>& lengths);
std::vector<std::string> cut(const std::string& all, const std::vector<int>& offsets);

}  // namespace lockstep
