// What a refusal says, for tests of its exact words.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"

namespace lockstep {

// "no error" if `act` does not throw.
template <typename Act>
std::string message_of(Failure failure, Act act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), failure);
    return error.what();
  }
  return "no error";
}

}  // namespace lockstep
