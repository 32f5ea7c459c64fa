#include "dataset/shards/odd_files.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/counted.hpp"
#include "base/text/table_cell.hpp"

namespace lockstep {
namespace {

std::string odd_files_text(const std::vector<OddFile>& odd_files) {
  std::string text = "file,taken,remark\n";
  for (const OddFile& odd : odd_files) {
    text += fmt::format("{},{},{}\n", text_cell(odd.file, TableFormat::csv), odd.is_skipped ? "no" : "yes",
                        text_cell(odd.remark, TableFormat::csv));
  }
  return text;
}

}  // namespace

void write_odd_files(const std::filesystem::path& folder, std::vector<OddFile> odd_files) {
  if (odd_files.empty()) return;
  std::ranges::sort(odd_files, {}, &OddFile::file);
  const auto skipped = std::ranges::count(odd_files, true, &OddFile::is_skipped);
  const std::filesystem::path file = folder / "odd_files.csv";
  write_file_atomically(file, odd_files_text(odd_files));
  log::info("{} left out, {} kept with a remark: '{}' lists each file with the reason.", counted(skipped, "file"),
            std::ssize(odd_files) - skipped, file.string());
}

}  // namespace lockstep
