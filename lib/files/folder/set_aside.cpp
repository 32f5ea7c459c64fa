#include "files/folder/set_aside.hpp"

#include <system_error>

#include "base/io/partial_file.hpp"
#include "base/system_failure.hpp"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

void require_done(const std::error_code& error, const fs::path& path) {
  if (!error) return;
  throw system_failure(fmt::format("cannot move '{}' aside", path.string()), error.value(), Access::writing,
                       "it would be overwritten");
}

// True also for a dangling link.
bool has_name(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

}  // namespace

bool SetAside::exists(const std::string& name) const { return has_name(lock_.folder() / name); }

void SetAside::make() {
  if (!path_.empty()) return;
  lock_.require_held();
  std::error_code error;
  for (int number = 1; path_.empty(); ++number) {
    const fs::path next = lock_.folder() / fmt::format("set-aside-{}", number);
    if (fs::create_directory(next, error)) path_ = next;
    require_done(has_name(next) ? std::error_code() : error, next);
  }
}

void SetAside::move(const std::string& name) {
  if (!exists(name)) return;
  make();
  std::error_code error;
  fs::rename(lock_.folder() / name, path_ / name, error);
  require_done(error, lock_.folder() / name);
}

void SetAside::copy(const std::string& name) {
  if (!exists(name)) return;
  make();
  const fs::path partial = partial_path(lock_.folder() / name);
  std::error_code error;
  fs::copy_file(lock_.folder() / name, partial, error);
  if (!error) fs::rename(partial, path_ / name, error);
  std::error_code ignored;
  if (error) fs::remove(partial, ignored);
  require_done(error, lock_.folder() / name);
}

}  // namespace lockstep
