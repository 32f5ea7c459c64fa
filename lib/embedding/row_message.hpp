// Messages between ranks about rows of embedding tables: whole numbers of 64 bits and fp32 values, in the byte order of
// the machine.
//
// A receiver takes numbers from the front of a message, and checks them before it uses them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "embedding/row_blocks.hpp"

namespace lockstep {

template <class Number>
void append_numbers(std::string& message, std::span<const Number> numbers) {
  message.append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
}

// The rest of a message that rank `sender` has sent.
struct RowMessage {
  std::string_view rest;
  int sender = 0;

  // Throws Error if the rest is shorter.
  template <class Number>
  std::vector<Number> take(std::size_t count) {
    require(
        count <= rest.size() / sizeof(Number), Failure::other,
        "the message of rank {} about rows of embedding tables is too short: {} bytes are left for {} numbers of {} "
        "bytes. Start the same program on all ranks.",
        sender, rest.size(), count, sizeof(Number));
    std::vector<Number> numbers(count);
    std::copy_n(rest.data(), count * sizeof(Number), reinterpret_cast<char*>(numbers.data()));
    rest.remove_prefix(count * sizeof(Number));
    return numbers;
  }
  // Their number, then the rows. Throws Error likewise, and if a row is not in `range`.
  std::vector<std::int64_t> take_rows(const RowRange& range);
  // Throws Error if something is left.
  void end() const;
};

}  // namespace lockstep
