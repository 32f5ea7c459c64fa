#include "slurm/node_list.hpp"

#include <algorithm>
#include <cstdint>

#include "base/error.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"

namespace lockstep {
namespace {

constexpr std::string_view name_characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
constexpr std::size_t max_digits = 9;

class NodeList {
 public:
  explicit NodeList(std::string_view text) : text_(text) {}

  std::vector<std::string> expand() {
    std::vector<std::string> nodes;
    for (bool more = true; more; more = take(',')) {
      for (std::string& node : names()) nodes.push_back(std::move(node));
      require_few(nodes.size());
    }
    if (at_ != text_.size()) refuse();
    return nodes;
  }

 private:
  [[noreturn]] void refuse() const {
    throw Error(Failure::bad_data,
                fmt::format("'{}' is not a Slurm node list, such as n[1-3,7]: character {} is not valid.",
                            printable(text_), at_ + 1));
  }
  void require_few(std::size_t nodes) const {
    require(nodes <= max_nodes, Failure::bad_data, "the node list '{}...' has more than {} names.",
            printable(text_.substr(0, 60)), max_nodes);
  }

  bool take(char wanted) {
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  // Parses one element of the list: alternating plain text and brackets.
  std::vector<std::string> names() {
    std::vector<std::string> names = {""};
    const std::size_t start = at_;
    while (at_ < text_.size() && text_[at_] != ',') {
      if (take('[')) {
        names = products(names, ranges());
      } else {
        if (name_characters.find(text_[at_]) == std::string_view::npos) refuse();
        for (std::string& name : names) name += text_[at_];
        ++at_;
      }
    }
    if (at_ == start) refuse();
    return names;
  }

  std::vector<std::string> products(const std::vector<std::string>& starts,
                                    const std::vector<std::string>& ends) const {
    require_few(starts.size() * ends.size());
    std::vector<std::string> names;
    for (const std::string& start : starts) {
      for (const std::string& end : ends) names.push_back(start + end);
    }
    return names;
  }

  // Parses the contents of brackets, from after '[' through ']'.
  std::vector<std::string> ranges() {
    std::vector<std::string> numbers;
    do {
      const std::string_view first = digits();
      const std::string_view last = take('-') ? digits() : first;
      const auto from = number(first);
      const auto to = number(last);
      if (from > to) refuse();
      require_few(numbers.size() + static_cast<std::size_t>(to - from) + 1);
      for (std::int64_t value = from; value <= to; ++value) {
        const std::string plain = number_text(value);
        numbers.push_back(std::string(first.size() - std::min(first.size(), plain.size()), '0') + plain);
      }
    } while (take(','));
    if (!take(']')) refuse();
    return numbers;
  }

  std::string_view digits() {
    const std::size_t start = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ == start || at_ - start > max_digits) refuse();
    return text_.substr(start, at_ - start);
  }
  std::int64_t number(std::string_view text) const {
    constexpr std::int64_t most = 999'999'999;
    const auto value = parse_number<std::int64_t>(text, {.least = 0, .most = most});
    if (!value) refuse();
    return *value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::string> expand_node_list(std::string_view list) {
  if (list.empty()) return {};
  return NodeList(list).expand();
}

}  // namespace lockstep
