// search.html: what a search has found, as one page.
#pragma once

#include <filesystem>
#include <string>

#include "search/page/search_record.hpp"

namespace lockstep {

// A complete page (report/page/html.hpp).
std::string search_page(const SearchRecord& search);

// Reads the search in `folder` and writes its page to search.html there. Throws as read_search() and
// write_file_atomically().
void write_search_page(const std::filesystem::path& folder);

}  // namespace lockstep
