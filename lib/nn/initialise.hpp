// What weights start with: a pure function of (seed, parameter name, element index), the same on every rank and
// machine.
#pragma once

#include <cstdint>

#include "nn/parameter_store.hpp"

namespace lockstep {

// He et al. 2015, "Delving deep into rectifiers": deviation sqrt(2 / (out * kernel^2)), torchvision's choice for
// ResNets.
Initial he_normal_fan_out(std::int64_t out_channels, std::int64_t kernel);
// PyTorch's default for convolutions and linear layers, weights and biases alike: bound 1 / sqrt(fan_in).
Initial uniform_fan_in(std::int64_t fan_in);
constexpr Initial constant(float value) { return {Initial::Kind::constant, value}; }

// Writes every parameter's initial values. Elements count in PyTorch's order, so that the device's storage does not
// matter.
void initialise(ParameterStore& store, std::uint64_t seed);

}  // namespace lockstep
