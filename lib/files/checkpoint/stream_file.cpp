#include "files/checkpoint/stream_file.hpp"

#include <exception>
#include <optional>

namespace lockstep {

void stream_file(const std::filesystem::path& path, const std::function<void()>& require_owner,
                 const WriteContent& write) {
  std::optional<UnpublishedFile> file;
  std::exception_ptr failure;
  try {
    require_owner();
    file.emplace(path);
  } catch (...) {
    failure = std::current_exception();
  }
  write(file ? &*file : nullptr);
  if (failure) std::rethrow_exception(failure);
  file->publish(require_owner);
}

}  // namespace lockstep
