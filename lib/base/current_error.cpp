#include "base/current_error.hpp"

#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/output_closed.hpp"
#include "base/system_failure.hpp"

namespace lockstep {
namespace {

Error refused(std::string_view task, const std::error_code& reason) {
  return system_failure(task, reason.default_error_condition().value(), Access::reading);
}

Error want_of_memory() {
  return {Failure::out_of_memory,
          "out of memory: an allocation failed. Choose a smaller batch, or fewer ranks on this node."};
}

Error want_of_threads() {
  return {
      Failure::out_of_memory,
      "cannot start another thread: the limit on memory or on processes is reached. Raise it (ulimit -v, ulimit -u), "
      "or use fewer threads, or fewer ranks on this node."};
}

// Never destroyed, as threads may fail during exit.
std::vector<StatedPath>& known_paths() {
  static auto& only = *new std::vector<StatedPath>;
  return only;
}

Error without_option() {
  try {
    throw;
  } catch (const OutputClosed&) {
    return {Failure::output_closed, ""};
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return want_of_memory();
  } catch (const std::length_error&) {  // from a container that no memory could hold
    return want_of_memory();
  } catch (const std::filesystem::filesystem_error& error) {
    return refused(fmt::format("cannot use '{}'", error.path1().string()), error.code());
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) return want_of_threads();
    return refused("the system refused a request", error.code());
  } catch (const std::exception& error) {
    return Error(error.what());
  } catch (...) {
    return Error("unknown exception (a bug). Please report it.");
  }
}

}  // namespace

void set_stated_paths(std::vector<StatedPath> paths) { known_paths() = std::move(paths); }

Error current_error() {
  const Error error = without_option();
  return {error.failure(), with_option_of_path(error.what(), known_paths())};
}

}  // namespace lockstep
