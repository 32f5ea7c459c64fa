#include "base/io/hdf5.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <new>
#include <system_error>

#include "base/io/descriptor.hpp"
#include "base/system_failure.hpp"

namespace lockstep {

std::string hdf5_error_message() {
  std::string message;
  const auto append = [](unsigned, const H5E_error2_t* entry, void* text) -> herr_t {
    auto& line = *static_cast<std::string*>(text);
    // HDF5 appends the date, which ends in a newline, and flags.
    constexpr std::string_view details = ": time = ";
    std::string_view description = entry->desc ? entry->desc : "";
    description = description.substr(0, description.find(details));
    if (description.empty() || line.ends_with(description)) return 0;
    if (!line.empty()) line += ": ";
    line += description;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, append, &message);
  H5Eclear2(H5E_DEFAULT);
  return message.empty() ? "no reason given" : message;
}

void require_memory_for_hdf5() {
  constexpr std::size_t bytes = std::size_t{16} << 20U;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ::munmap(memory, bytes);
}

Hid<H5Fclose> open_hdf5(const RegularFile& file) {
  require_memory_for_hdf5();
  const Hid<H5Pclose> access(check_h5(H5Pcreate(H5P_FILE_ACCESS), "make an access list"));
  check_h5(H5Pset_file_locking(access, false, true), "do without file locks");
  const std::string name = fmt::format("/proc/self/fd/{}", file.descriptor());
  // HDF5 opens the file again, and would blame the file if the process has no descriptor left.
  const int error_number = Descriptor(::dup(file.descriptor())) < 0 ? errno : 0;
  if (error_number != 0) {
    std::error_code unknown;
    throw system_failure(fmt::format("cannot open '{}'", std::filesystem::read_symlink(name, unknown).string()),
                         error_number, Access::reading);
  }
  // careful-open: an image in memory of what regular_file read
  return Hid<H5Fclose>(H5Fopen(name.c_str(), H5F_ACC_RDONLY, access));
}

bool is_hard_link(hid_t location, const std::string& name) {
  H5L_info_t link;
  return H5Lget_info(location, name.c_str(), &link, H5P_DEFAULT) >= 0 && link.type == H5L_TYPE_HARD;
}

bool is_contiguous(hid_t dataset) {
  const Hid<H5Pclose> creation(H5Dget_create_plist(dataset));
  return H5Pget_layout(creation) == H5D_CONTIGUOUS && H5Pget_external_count(creation) == 0;
}

std::unique_lock<std::recursive_mutex> lock_hdf5() {
  static std::recursive_mutex mutex;
  return std::unique_lock(mutex);
}

void silence_hdf5() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

}  // namespace lockstep
