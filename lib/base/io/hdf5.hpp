// HDF5 identifiers that close themselves, and HDF5's reasons in words.
#pragma once

#include <hdf5.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/io/regular_file.hpp"

namespace lockstep {

// HDF5's error stack as one line, innermost last; empties the stack.
std::string hdf5_error_message();

// Returns `result` unless it is negative, HDF5's sign of failure; then throws Error(bad_data). `task` completes the
// sentence "HDF5 could not ...". For what no file decides: readers name theirs themselves. HDF5 prints its error stack
// as well until silence_hdf5() is called.
template <typename Result>
Result check_h5(Result result, std::string_view task) {
  if (result >= 0) return result;
  throw Error(Failure::bad_data, fmt::format("HDF5 could not {}: {}. Is there enough memory, and HDF5 installed whole?",
                                             task, hdf5_error_message()));
}

// Stops HDF5 from printing its error stack to standard error, for the rest of this thread: where it is built for
// threads, each of them has a stack and a handler of its own.
void silence_hdf5();

// Owns an HDF5 identifier. HDF5 closes every kind of object with its own function, so the function is part of the type
// and a dataset cannot be closed as a file.
template <herr_t (*close)(hid_t)>
class Hid {
 public:
  Hid() = default;
  explicit Hid(hid_t id) : id_(id) {}
  Hid(Hid&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Hid& operator=(Hid&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Hid() {
    if (id_ >= 0) close(id_);
  }
  // Implicit, so that it passes for the identifier in calls of HDF5.
  operator hid_t() const { return id_; }  // NOLINT(google-explicit-constructor)

 private:
  hid_t id_ = H5I_INVALID_HID;
};

// Opens the very file that is open already, whatever has its name by now; for reading, and without locks, which fail on
// Lustre and NFS. Negative, with hdf5_error_message(), where HDF5 cannot make sense of it.
Hid<H5Fclose> open_hdf5(const RegularFile& file);

}  // namespace lockstep
