#include "launch/stale_report.hpp"

#include <filesystem>
#include <memory>

#include "base/error.hpp"
#include "files/folder/folder_lock.hpp"
#include "run/exit_report.hpp"
#include "run/lock_holder.hpp"
#include "run/run_file.hpp"
#include "runtime/failure/failure_report.hpp"

namespace lockstep {
namespace {

std::filesystem::path output_of(const CLI::App& app) {
  const CLI::Option* const option = app.get_option_no_throw("--output");
  return option == nullptr || option->count() == 0 ? "" : option->results().back();
}

}  // namespace

void take_stale_report(const CLI::App& app) {
  const std::filesystem::path folder = output_of(app);
  if (folder.empty() || !read_exit_report(folder / run_files::failure)) return;
  if (holder_of(folder).kind != FolderHolder::Kind::nobody) return;
  try {
    const auto lock = std::make_shared<FolderLock>(folder, "--output");
    failure_report::set_folder(folder, {lock->token(), lock});
    failure_report::clear();
  } catch (const Error&) {
    failure_report::set_folder({});  // the sentence about the command line is what counts
  }
}

}  // namespace lockstep
