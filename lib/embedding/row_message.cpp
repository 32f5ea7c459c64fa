#include "embedding/row_message.hpp"

namespace lockstep {

std::vector<std::int64_t> RowMessage::take_rows(const RowRange& range) {
  // A negative number becomes one that exceeds every message.
  const auto count = static_cast<std::size_t>(take<std::int64_t>(1)[0]);
  std::vector<std::int64_t> rows = take<std::int64_t>(count);
  for (const std::int64_t row : rows) {
    require(range.contains(row), Failure::other,
            "rank {} has sent a message about row {} of an embedding table, but this rank holds {} rows from row {} "
            "on. Start the same program on all ranks.",
            sender, row, range.count, range.first);
  }
  return rows;
}

void RowMessage::end() const {
  require(rest.empty(), Failure::other,
          "the message of rank {} about rows of embedding tables is {} bytes too long. Start the same program on all "
          "ranks.",
          sender, rest.size());
}

}  // namespace lockstep
