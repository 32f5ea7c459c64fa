#include "dataset/pictures/class_folders.hpp"

#include <algorithm>
#include <system_error>

#include "base/error.hpp"
#include "base/system_failure.hpp"
#include "dataset/pictures/listing/folder_names.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr int max_depth = 16;

bool is_hidden(const fs::path& name) { return name.string().starts_with('.'); }

std::vector<fs::directory_entry> sorted_entries(const fs::path& folder) {
  std::error_code reason;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator at(folder, reason); !reason && at != fs::directory_iterator(); at.increment(reason)) {
    entries.push_back(*at);
  }
  if (reason) {
    throw system_failure(fmt::format("cannot list the folder '{}'", folder.string()), reason.value(), Access::reading,
                         "--source");
  }
  std::ranges::sort(entries, {}, [](const fs::directory_entry& entry) { return entry.path().filename().string(); });
  return entries;
}

bool is_skipped(const fs::path& name, const PictureStorage& storage) {
  return std::ranges::any_of(storage.skipped, [&](const std::string& skipped) { return name == fs::path(skipped); });
}

constexpr const char* skipped_text = "is left out by --skip";

// Leaves out a system folder with all its files, none of which the user made.
void add_system_folder(const fs::path& name, const PictureList& list, std::vector<OddFile>& left_out) {
  constexpr const char* words = "belongs to the operating system or the storage system";
  const std::size_t before = left_out.size();
  std::error_code reason;
  fs::recursive_directory_iterator at(list.folder / name, reason);
  for (; !reason && at != fs::recursive_directory_iterator(); at.increment(reason)) {
    std::error_code unseen;
    if (!at->is_directory(unseen))
      left_out.push_back({(name / at->path().lexically_relative(list.folder / name)).string(), true, words});
  }
  if (left_out.size() == before) left_out.push_back({name.string(), true, words});
}

// Walks through a class folder.
class ClassFolder {
 public:
  ClassFolder(const PictureStorage& storage, std::int32_t label, PictureList& list, std::vector<PictureFile>& files)
      : root_(fs::weakly_canonical(list.folder)), storage_(storage), label_(label), list_(list), files_(files) {}

  void add_class(const fs::path& folder) {
    std::error_code reason;
    if (!fs::is_directory(list_.folder / folder, reason) || is_skipped(folder, storage_)) return;
    if (fs::is_symlink(list_.folder / folder, reason) && leads_out(list_.folder / folder)) {
      return leave_out(folder, link_text);
    }
    add(folder, 0);
  }

 private:
  static constexpr const char* link_text = "is a link that leads out of the folder (--follow-links takes it)";

  void add(const fs::path& folder, int depth) {
    for (const fs::directory_entry& entry : sorted_entries(list_.folder / folder)) {
      add_entry(entry, folder / entry.path().filename(), depth);
    }
  }

  void add_entry(const fs::directory_entry& entry, const fs::path& name, int depth) {
    std::error_code reason;
    if (is_hidden(name.filename())) return leave_out(name, "is hidden");
    if (is_skipped(name, storage_)) return list_.remarks.push_back({name.string(), true, skipped_text});
    if (is_system_name(name.filename().string()) && fs::is_directory(entry.symlink_status(reason))) {
      return add_system_folder(name, list_, list_.remarks);
    }
    if (entry.is_symlink(reason) && leads_out(entry.path())) return leave_out(name, link_text);
    if (entry.is_symlink(reason) && leads_up(entry.path())) return leave_out(name, "is a link to a folder around it");
    if (entry.is_directory(reason)) {
      return depth < max_depth ? add(name, depth + 1) : leave_out(name, "lies too deep");
    }
    if (!entry.is_regular_file(reason)) return leave_out(name, reason ? "leads nowhere" : "is no regular file");
    const auto bytes = static_cast<std::int64_t>(entry.file_size(reason));
    if (reason) return leave_out(name, "cannot be looked at: " + reason.message());
    PictureFile file;
    file.name = name.string();
    file.bytes = bytes;
    file.label = label_;
    files_.push_back(std::move(file));
  }

  bool leads_out(const fs::path& link) const {
    std::error_code reason;
    const fs::path target = fs::canonical(link, reason);
    if (reason || storage_.follows_links) return false;  // dangling links are reported as such by the caller
    return std::ranges::mismatch(root_, target).in1 != root_.end();
  }

  // A link to a parent folder would add the same pictures again and again.
  static bool leads_up(const fs::path& link) {
    std::error_code reason;
    const fs::path target = fs::canonical(link, reason);
    if (reason) return false;
    const fs::path here = fs::weakly_canonical(link.parent_path());
    return std::ranges::mismatch(target, here).in1 == target.end();
  }

  void leave_out(const fs::path& name, const std::string& why) { list_.left_out.push_back({name.string(), true, why}); }

  fs::path root_;
  const PictureStorage& storage_;
  std::int32_t label_;
  PictureList& list_;
  std::vector<PictureFile>& files_;
};

}  // namespace

bool FolderContents::has_pictures() const { return std::ranges::any_of(files, may_be_picture); }

FolderContents contents_of(const fs::path& part, const PictureStorage& storage, const PictureList& list) {
  FolderContents contents;
  for (const fs::directory_entry& entry : sorted_entries(list.folder / part)) {
    const fs::path name = part / entry.path().filename();
    std::error_code reason;
    const bool is_folder = entry.is_directory(reason);
    const bool is_system = is_system_name(name.filename().string());
    if (is_hidden(name.filename())) {
      contents.left_out.push_back({name.string(), true, "is hidden"});
    } else if (is_skipped(name, storage)) {
      contents.left_out.push_back({name.string(), true, skipped_text});
    } else if (is_system) {
      add_system_folder(name, list, contents.left_out);
    } else if (is_folder) {
      contents.folders.push_back(name.filename().string());
    } else if (entry.is_regular_file(reason)) {
      contents.files.push_back(name.filename().string());
    } else {
      contents.left_out.push_back({name.string(), true, reason ? "leads nowhere" : "is no regular file"});
    }
  }
  return contents;
}

void add_class_folders(const fs::path& part, const std::vector<std::string>& classes, const PictureStorage& storage,
                       PictureList& list, std::vector<PictureFile>& files) {
  for (std::size_t label = 0; label < classes.size(); ++label) {
    ClassFolder(storage, static_cast<std::int32_t>(label), list, files).add_class(part / classes[label]);
  }
}

}  // namespace lockstep
