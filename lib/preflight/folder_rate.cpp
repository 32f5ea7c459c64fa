#include "preflight/folder_rate.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/io/partial_file.hpp"
#include "base/io/regular_file.hpp"

namespace lockstep {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;
constexpr std::size_t max_pieces = 64;
constexpr double max_seconds = 2;

std::filesystem::path nearest_there(std::filesystem::path folder) {
  std::error_code error;
  folder = std::filesystem::absolute(folder, error);
  while (!std::filesystem::exists(folder, error) && folder.has_parent_path() && folder != folder.parent_path()) {
    folder = folder.parent_path();
  }
  return folder;
}

std::string refused(const char* task, const std::filesystem::path& path, int error) {
  return fmt::format("cannot {} '{}': {}. Free some space, or choose a folder that every node can write to.", task,
                     path.string(), system_error_message(error));
}

// Each block differs, so that storage cannot deduplicate them.
std::vector<std::byte> piece(std::size_t number) {
  std::vector<std::byte> bytes(piece_bytes);
  std::uint64_t state = 0x9e3779b97f4a7c15U * (number + 1);
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(state)) {
    state ^= state << 13U;  // xorshift64 (Marsaglia 2003)
    state ^= state >> 7U;
    state ^= state << 17U;
    std::memcpy(bytes.data() + at, &state, sizeof(state));
  }
  return bytes;
}

bool write_all(int file, const std::vector<std::byte>& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::write(file, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    done += static_cast<std::size_t>(written);
  }
  return true;
}

bool read_all(int file, std::vector<std::byte>& bytes, std::size_t from) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::pread(file, bytes.data() + done, bytes.size() - done, static_cast<off_t>(from + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

class Trial {
 public:
  explicit Trial(const std::filesystem::path& folder)
      : made_(create_partial_file(folder / "check_cluster")), error_(errno) {}
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial() { remove(); }

  void run(FolderFacts& facts) {
    if (made_.file < 0) {
      facts.fault = refused("write to the folder of", made_.path, error_);
      return;
    }
    const RegularFile written(made_.path);
    remove();  // unlinks the file at once: a killed program leaves nothing behind
    double making_seconds = 0;
    const Stopwatch writing;
    while (pieces_ < max_pieces && writing.seconds() < max_seconds) {
      const Stopwatch making;
      const std::vector<std::byte> bytes = piece(pieces_);
      making_seconds += making.seconds();
      if (!write_all(made_.file, bytes)) {
        facts.fault = refused("write", made_.path, errno);
        return;
      }
      ++pieces_;
    }
    if (::fsync(made_.file) != 0) {
      facts.fault = refused("sync", made_.path, errno);
      return;
    }
    const auto bytes = static_cast<double>(pieces_ * piece_bytes);
    facts.write_bytes_per_second = bytes / (writing.seconds() - making_seconds);
    read_back(written, facts);
  }

 private:
  void remove() {
    if (made_.file >= 0 && !std::exchange(is_removed_, true)) ::unlink(made_.path.c_str());
  }

  void read_back(const RegularFile& file, FolderFacts& facts) const {
    ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
    std::vector<std::byte> got(piece_bytes);
    double seconds = 0;
    std::size_t done = 0;
    while (done < pieces_ && seconds < max_seconds) {
      const Stopwatch reading;
      if (!read_all(file.descriptor(), got, done * piece_bytes)) {
        facts.fault = refused("read", made_.path, errno);
        return;
      }
      seconds += reading.seconds();
      if (got != piece(done)) {
        facts.fault = fmt::format("'{}' returns other bytes than were written. Do not use this file system.",
                                  made_.path.string());
        return;
      }
      ++done;
    }
    facts.read_bytes_per_second = static_cast<double>(done * piece_bytes) / seconds;
  }

  PartialFile made_;
  int error_;
  bool is_removed_ = false;
  std::size_t pieces_ = 0;
};

}  // namespace

FolderFacts try_folder(const std::filesystem::path& folder) {
  FolderFacts facts;
  const std::filesystem::path there = nearest_there(folder);
  try {
    Trial(there).run(facts);
  } catch (const std::system_error& error) {
    facts.fault = refused("read back from", there, error.code().value());
  }
  struct statvfs status {};
  if (::statvfs(there.c_str(), &status) == 0) {
    facts.free_bytes = static_cast<double>(status.f_bavail) * static_cast<double>(status.f_frsize);
  }
  return facts;
}

}  // namespace lockstep
