// The message of an error, for tests that check parts of it, or pass it to expect_message().
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
