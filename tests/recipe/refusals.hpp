// Tables of calls that are refused with Failure::usage.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "support/messages.hpp"

namespace lockstep::recipe_test {

struct Refusal {
  const char* name;
  std::function<void()> act;
  const char* subject;  // that the message names
};

inline void expect_refusals(const std::vector<Refusal>& rows) {
  for (const Refusal& row : rows) {
    SCOPED_TRACE(row.name);
    expect_error(Failure::usage, {row.subject}, row.act);
  }
}

}  // namespace lockstep::recipe_test
