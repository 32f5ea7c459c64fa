// Initialization of weights: a pure function of (seed, parameter name, element index), the same on every rank and
// machine.
#pragma once

#include <cstdint>

#include "nn/parameter_store.hpp"

namespace lockstep {

// He et al. 2015, "Delving deep into rectifiers", as in torchvision's ResNets: standard deviation sqrt(2 / fan_out),
// where fan_out is the number of output channels times that of the kernel's pixels.
Initial he_normal_fan_out(std::int64_t fan_out);
// PyTorch's default for weights and biases of convolutions and linear layers: uniform with bound 1 / sqrt(fan_in).
Initial uniform_fan_in(std::int64_t fan_in);
constexpr Initial constant(float value) { return {Initial::Kind::constant, value}; }

// Writes the initial values of every parameter. Elements are numbered in PyTorch's order, so the device's storage
// layout does not affect them.
void initialize(ParameterStore& store, std::uint64_t seed);

}  // namespace lockstep
