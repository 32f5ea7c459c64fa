// HDF5 identifiers that close themselves, and HDF5's error messages.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/io/regular_file.hpp"

namespace lockstep {

// HDF5's error stack as one line, innermost error last. Clears the stack.
std::string hdf5_error_message();

// Returns `result`, or throws Error(bad_data) if it is negative, HDF5's sign of failure. `task` completes the sentence
// "HDF5 could not ...". Only for calls whose failure no file causes: errors of a file name that file. HDF5 also prints
// its error stack until silence_hdf5() is called.
template <typename Result>
Result check_h5(Result result, std::string_view task) {
  if (result >= 0) return result;
  throw Error(Failure::bad_data, fmt::format("HDF5 could not {}: {}. Check the free memory and the HDF5 installation.",
                                             task, hdf5_error_message()));
}

// HDF5 is not built thread-safe in most distributions. Whatever calls HDF5 while other threads may do so holds this
// lock, which a thread can take again.
std::unique_lock<std::recursive_mutex> lock_hdf5();

// Stops HDF5 from printing its error stack to standard error in this thread. A thread-safe build of HDF5 has a stack
// and a handler for each thread.
void silence_hdf5();

// Owns an HDF5 identifier. HDF5 has a close function for every kind of object. The function is part of the type, so
// that a dataset cannot be closed as a file.
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
  // Implicit, so that it can be passed to HDF5 functions.
  operator hid_t() const { return id_; }  // NOLINT(google-explicit-constructor)

 private:
  hid_t id_ = H5I_INVALID_HID;
};

// Throws std::bad_alloc unless the process may have some MiB more. Call before a file is opened or created: HDF5 1.10
// uses memory that it did not get (H5AC_create).
void require_memory_for_hdf5();

// Opens the file behind an open descriptor, even if its name now belongs to another file. Read-only and without locks,
// which fail on Lustre and NFS. If HDF5 cannot read the file, the result is negative and hdf5_error_message() has the
// reason.
Hid<H5Fclose> open_hdf5(const RegularFile& file);

// The objects of an untrusted file may point to any file of this machine, which HDF5 then opens. Readers ask
// - before they open an object: whether it is in the file of `location`, without a soft or external link
bool is_hard_link(hid_t location, const std::string& name);
// - before they read the shape of a dataset: whether its values are in one piece in its file. HDF5 looks for the shape
//   of a virtual dataset in other files.
bool is_contiguous(hid_t dataset);

}  // namespace lockstep
