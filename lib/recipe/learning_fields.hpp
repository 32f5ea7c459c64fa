// The part of the table that says how weights move: optimizer and course of the learning rate.
#pragma once

#include <vector>

#include "recipe/field.hpp"

namespace lockstep {

std::vector<Field> optimizer_fields();
std::vector<Field> schedule_fields();

}  // namespace lockstep
