#include "nn/initialize.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "device/cpu/threads/parallel.hpp"

namespace lockstep {
namespace {

// Philox counter for elements [2 * pair, 2 * pair + 2) of the named parameter. The middle 64 bits are the name's hash,
// so two names share a block with probability 2^-64.
std::array<std::uint32_t, 4> block(std::uint64_t seed, std::uint64_t name_hash, std::uint64_t pair) {
  const std::uint64_t high = static_cast<std::uint64_t>(Stream::weights) << 32 | name_hash >> 32;
  return philox(seed, high, name_hash << 32 | pair);
}

float draw(const Initial& initial, std::uint32_t a, std::uint32_t b) {
  switch (initial.kind) {
    case Initial::Kind::constant:
      return initial.size;
    case Initial::Kind::normal:
      return initial.size * normal(a, b);
    case Initial::Kind::uniform:
      return initial.size * (2.0F * uniform(a) - 1.0F);
  }
  return 0.0F;
}

// `values` are those of filters [out, in, rows, columns].
void write_identity(const std::vector<std::int64_t>& dims, std::vector<float>& values) {
  const std::int64_t pixels = dims[2] * dims[3];
  const std::int64_t filter = dims[1] * pixels;
  const std::int64_t center = dims[2] / 2 * dims[3] + dims[3] / 2;
  const std::int64_t filters = std::min(dims[0], dims[1]);
  std::fill_n(values.begin(), filters * filter, 0.0F);
  for (std::int64_t i = 0; i < filters; ++i) values[static_cast<std::size_t>(i * filter + i * pixels + center)] = 1;
}

std::vector<float> initial_values(const Parameter& parameter, std::uint64_t seed) {
  const std::uint64_t name_hash = XXH3_64bits(parameter.name.data(), parameter.name.size());
  std::vector<float> values(static_cast<std::size_t>(parameter.count()));
  cpu::parallel_for(cpu::loop_threads(), (parameter.count() + 1) / 2, [&](std::int64_t pair) {
    const auto bits = block(seed, name_hash, static_cast<std::uint64_t>(pair));
    const auto i = 2 * static_cast<std::size_t>(pair);
    values[i] = draw(parameter.initial, bits[0], bits[1]);
    if (i + 1 < values.size()) values[i + 1] = draw(parameter.initial, bits[2], bits[3]);
  });
  if (parameter.initial.begins_with_identity) write_identity(parameter.dims, values);
  return values;
}

}  // namespace

Initial he_normal_fan_out(std::int64_t fan_out) {
  return {Initial::Kind::normal, static_cast<float>(std::sqrt(2.0 / static_cast<double>(fan_out)))};
}

Initial uniform_fan_in(std::int64_t fan_in) {
  return {Initial::Kind::uniform, static_cast<float>(1.0 / std::sqrt(static_cast<double>(fan_in)))};
}

void initialize(ParameterStore& store, std::uint64_t seed) {
  for (const Parameter& parameter : store.parameters()) {
    store.device().store(parameter.kind, parameter.dims, initial_values(parameter, seed), parameter.value);
  }
}

}  // namespace lockstep
