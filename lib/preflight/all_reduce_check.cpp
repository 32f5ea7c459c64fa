#include "preflight/all_reduce_check.hpp"

#include <vector>

namespace lockstep {
namespace {

int owner_of(std::size_t at, std::size_t count, int ranks) {
  return static_cast<int>(at * static_cast<std::size_t>(ranks) / count);
}
float owned_value(std::size_t at) { return static_cast<float>(2 + at % 1021); }

}  // namespace

float checked_contribution(int rank, int ranks, std::size_t at, std::size_t count) {
  return owner_of(at, count, ranks) == rank ? owned_value(at) : 1.0F;
}

std::optional<int> find_wrong_contributor(Device& device, AllReducer& reducer, const Tensor& values, int rank,
                                          int ranks) {
  std::vector<float> host(static_cast<std::size_t>(values.shape()[0]));
  for (std::size_t at = 0; at < host.size(); ++at) host[at] = checked_contribution(rank, ranks, at, host.size());
  device.write(host, values);
  reducer.start_sum(values);
  reducer.wait();
  device.synchronize();
  device.read(values, host);
  for (std::size_t at = 0; at < host.size(); ++at) {
    if (host[at] != owned_value(at) + static_cast<float>(ranks - 1)) return owner_of(at, host.size(), ranks);
  }
  return std::nullopt;
}

}  // namespace lockstep
