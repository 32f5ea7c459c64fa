#include "base/hdf5.hpp"

namespace lockstep {

std::string hdf5_words() {
  std::string words;
  const auto append = [](unsigned, const H5E_error2_t* entry, void* text) -> herr_t {
    auto& line = *static_cast<std::string*>(text);
    // Behind this stand the date, with the end of a line in it, and flags.
    constexpr std::string_view details = ": time = ";
    std::string_view description = entry->desc ? entry->desc : "";
    description = description.substr(0, description.find(details));
    if (description.empty() || line.ends_with(description)) return 0;
    if (!line.empty()) line += ": ";
    line += description;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, append, &words);
  H5Eclear2(H5E_DEFAULT);
  return words.empty() ? "no reason given" : words;
}

void silence_hdf5() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

}  // namespace lockstep
