#include "launch/current_failure.hpp"

#include <fmt/format.h>

#include <csignal>
#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/output_closed.hpp"
#include "base/system_failure.hpp"

namespace lockstep {
namespace {

CurrentFailure refused(std::string_view task, const std::error_code& reason) {
  const Error error = system_failure(task, reason.default_error_condition().value(), Access::reading);
  return {error.exit_code(), error.what()};
}

CurrentFailure want_of_memory() {
  return {static_cast<int>(Failure::out_of_memory),
          "out of memory: an allocation failed. Choose a smaller batch, or fewer ranks on this node."};
}

// Never destroyed, as threads may fail during exit.
std::vector<StatedPath>& known_paths() {
  static auto& only = *new std::vector<StatedPath>;
  return only;
}

CurrentFailure describe_exception() {
  try {
    throw;
  } catch (const OutputClosed&) {
    return {128 + SIGPIPE, ""};  // the code that shells report for a program that SIGPIPE ends
  } catch (const Error& error) {
    return {error.exit_code(), error.what()};
  } catch (const std::bad_alloc&) {
    return want_of_memory();
  } catch (const std::length_error&) {  // from a container that no memory could hold
    return want_of_memory();
  } catch (const std::filesystem::filesystem_error& error) {
    return refused(fmt::format("cannot use '{}'", error.path1().string()), error.code());
  } catch (const std::system_error& error) {
    return refused("the system refused a request", error.code());
  } catch (const std::exception& error) {
    return {static_cast<int>(Failure::other), error.what()};
  } catch (...) {
    return {static_cast<int>(Failure::other), "unknown exception (a bug). Please report it."};
  }
}

}  // namespace

void set_stated_paths(std::vector<StatedPath> paths) { known_paths() = std::move(paths); }

CurrentFailure describe_current_failure() {
  CurrentFailure failure = describe_exception();
  failure.sentence = with_option_of_path(std::move(failure.sentence), known_paths());
  return failure;
}

}  // namespace lockstep
