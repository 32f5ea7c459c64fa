// Messages in tests. A test states the failure class and what the message must name: the option, path, rank or number.
// The sentence itself is approved in messages.txt of the test's folder below tests/, where a reviewer reads all of them
// together (tests/approve_messages.py). So better wording changes that file and no test.
#pragma once

#include <exception>
#include <initializer_list>
#include <source_location>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace lockstep {

using Subjects = std::initializer_list<std::string_view>;

// Fails unless `message` contains each of `subjects` and is the sentence that is approved for this call: the n-th of
// its test. The approved form has {folder} for temporary folders and {names} for lists after "Known: ".
void expect_message(std::string_view message, Subjects subjects,
                    const std::source_location& where = std::source_location::current());

// Fails unless `act` throws an Error of this class whose message passes expect_message().
template <typename Act>
void expect_error(Failure failure, Subjects subjects, Act act,
                  const std::source_location& where = std::source_location::current());

// Not for use by tests.
void expect_failure_class(Failure expected, const Error* error, const std::source_location& where);

template <typename Act>
void expect_error(Failure failure, Subjects subjects, Act act, const std::source_location& where) {
  try {
    act();
  } catch (const Error& error) {
    expect_failure_class(failure, &error, where);
    expect_message(error.what(), subjects, where);
    return;
  }
  expect_failure_class(failure, nullptr, where);
}

}  // namespace lockstep
