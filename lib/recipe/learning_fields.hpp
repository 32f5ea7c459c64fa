// The part of the table for optimizer and learning-rate schedule.
#pragma once

#include <vector>

#include "recipe/field.hpp"

namespace lockstep {

std::vector<Field> optimizer_fields();
std::vector<Field> schedule_fields();

}  // namespace lockstep
