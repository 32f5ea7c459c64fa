#include "network/network_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text/json_text.hpp"
#include "base/text/printable.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr std::size_t most_nodes = 40'000;
constexpr std::int64_t largest_side = 65536;  // of images, windows and strides
constexpr std::int64_t most_channels = std::int64_t{1} << 31;
constexpr std::int64_t most_weights = std::int64_t{1} << 40;  // of a layer: their sum over all layers does not overflow

[[noreturn]] void damaged(const std::string& what) {
  throw Error(Failure::bad_data, fmt::format("the description of its network is damaged: {}.", what));
}

// A number if rows and columns have the same one, otherwise both: [1,7].
Json json_of(const Size2d& size) {
  return size.is_square() ? Json(size.height) : Json::array({size.height, size.width});
}

// The last numbers of some operations are omitted if they are the usual ones.
struct NumbersOf {
  Json operator()(const op::Convolution& one) const {
    const Conv2d& conv = one.conv;
    return {conv.in_channels,     conv.out_channels,     json_of(conv.kernel),
            json_of(conv.stride), json_of(conv.padding), one.has_bias ? 1 : 0};
  }
  Json operator()(const op::BatchNorm& one) const {
    return one.epsilon == op::BatchNorm{}.epsilon ? Json::array() : Json{one.epsilon};
  }
  Json operator()(const op::LeakyRelu& one) const { return {one.slope}; }
  Json operator()(const op::Clip& one) const { return {one.low, one.high}; }
  Json operator()(const op::Scale& one) const { return one.factors; }
  Json operator()(const op::Shift& one) const { return one.terms; }
  Json operator()(const op::Dropout& one) const { return {one.ratio}; }
  Json operator()(const op::MaxPool& one) const {
    Json numbers = {one.pool.kernel, one.pool.stride, one.pool.padding};
    if (one.pool.ceil) numbers.push_back(1);
    return numbers;
  }
  Json operator()(const op::AveragePool& one) const {
    const Pool2d& pool = one.pool;
    return {pool.kernel, pool.stride, pool.padding, pool.ceil ? 1 : 0, one.counts_padding ? 1 : 0};
  }
  Json operator()(const op::Blur& one) const { return {one.stride}; }
  Json operator()(const op::Subsample& one) const { return {one.stride, one.out_channels}; }
  Json operator()(const op::Linear& one) const {
    Json numbers = {one.in, one.out};
    if (!one.has_bias) numbers.push_back(0);
    return numbers;
  }
  template <typename Kind>
  Json operator()(const Kind&) const {
    return Json::array();
  }
};

// Reads the numbers of a node in order, each with its bounds.
class NumberReader {
 public:
  NumberReader(std::string name, const Json& numbers) : name_(std::move(name)), numbers_(numbers) {
    if (!numbers.is_array()) refuse();
  }
  std::int64_t next(std::int64_t least, std::int64_t most) {
    if (at_ >= numbers_.size() || !numbers_[at_].is_number_integer()) refuse();
    const auto value = numbers_[at_++].get<std::int64_t>();
    if (value < least || value > most) refuse();
    return value;
  }
  // A number for both dimensions, or a list of two.
  Size2d next_size(std::int64_t least, const Size2d& most) {
    if (!has_more() || !numbers_[at_].is_array()) return next(least, std::min(most.height, most.width));
    NumberReader sizes(name_, numbers_[at_++]);
    const std::int64_t height = sizes.next(least, most.height);
    const std::int64_t width = sizes.next(least, most.width);
    sizes.end();
    return {height, width};
  }
  float next_real(float least, float most) {
    if (at_ >= numbers_.size() || !numbers_[at_].is_number()) refuse();
    const auto value = numbers_[at_++].get<double>();
    const bool is_possible = value >= static_cast<double>(least) && value <= static_cast<double>(most);  // NaN is not
    if (!is_possible) refuse();
    return static_cast<float>(value);
  }
  bool next_flag() { return next(0, 1) != 0; }
  bool has_more() const { return at_ < numbers_.size(); }
  void end() const {
    if (has_more()) refuse();
  }
  [[noreturn]] void refuse() const { damaged(fmt::format("node '{}' has impossible numbers", name_)); }

 private:
  std::string name_;
  const Json& numbers_;
  std::size_t at_ = 0;
};

Pool2d next_pool(NumberReader& numbers) {
  Pool2d pool{};
  pool.kernel = numbers.next(1, Pool2d::largest_kernel);
  pool.stride = numbers.next(1, largest_side);
  pool.padding = numbers.next(0, pool.kernel - 1);
  pool.ceil = numbers.has_more() && numbers.next_flag();
  return pool;
}

std::vector<float> next_constants(NumberReader& numbers) {
  constexpr float largest = std::numeric_limits<float>::max();
  std::vector<float> constants;
  do {
    constants.push_back(numbers.next_real(-largest, largest));
  } while (numbers.has_more());
  return constants;
}

Operation operation_of(const std::string& kind, const std::string& name, NumberReader& numbers) {
  const auto is = [&](const Operation& one) { return kind == operation_name(one); };
  if (is(op::Convolution{})) {
    op::Convolution one;
    Conv2d& conv = one.conv;
    conv.in_channels = numbers.next(1, most_channels);
    conv.out_channels = numbers.next(1, most_channels);
    conv.kernel = numbers.next_size(1, largest_side);
    conv.stride = numbers.next_size(1, largest_side);
    if (conv.kernel.area() > most_weights / conv.in_channels / conv.out_channels) numbers.refuse();
    conv.padding = numbers.next_size(0, {conv.kernel.height - 1, conv.kernel.width - 1});
    one.has_bias = numbers.next_flag();
    return one;
  }
  if (is(op::BatchNorm{})) {
    op::BatchNorm one;
    if (numbers.has_more()) one.epsilon = numbers.next_real(std::numeric_limits<float>::denorm_min(), 1);
    return one;
  }
  if (is(op::LeakyRelu{})) return op::LeakyRelu{numbers.next_real(0, op::LeakyRelu::largest_slope)};
  if (is(op::Clip{})) {
    const float low = numbers.next_real(-op::Clip::largest_bound, op::Clip::largest_bound);
    const float high = numbers.next_real(low, op::Clip::largest_bound);
    if (!(low < high)) damaged(fmt::format("node '{}' has impossible numbers", name));
    return op::Clip{low, high};
  }
  if (is(op::Scale{})) return op::Scale{next_constants(numbers)};
  if (is(op::Shift{})) return op::Shift{next_constants(numbers)};
  if (is(op::Dropout{})) return op::Dropout{numbers.next_real(0, op::Dropout::largest_ratio)};
  if (is(op::MaxPool{})) return op::MaxPool{next_pool(numbers)};
  if (is(op::AveragePool{})) {
    const Pool2d pool = next_pool(numbers);
    return op::AveragePool{pool, numbers.next_flag()};
  }
  if (is(op::Blur{})) return op::Blur{numbers.next(1, 2)};
  if (is(op::Subsample{})) {
    const std::int64_t stride = numbers.next(1, largest_side);
    return op::Subsample{stride, numbers.next(1, most_channels)};
  }
  if (is(op::Linear{})) {
    const std::int64_t in = numbers.next(1, most_channels);
    const std::int64_t out = numbers.next(1, most_channels);
    if (in > most_weights / out) numbers.refuse();
    return op::Linear{in, out, !numbers.has_more() || numbers.next_flag()};
  }
  const std::vector<Operation> others = {op::Relu{},   op::Sigmoid{},        op::Tanh{},    op::Gelu{},     op::Add{},
                                         op::Concat{}, op::GlobalMeanPool{}, op::Flatten{}, op::Unflatten{}};
  const auto found = std::ranges::find(others, kind, operation_name);
  if (found == others.end()) damaged(fmt::format("node '{}' has an unknown operation", name));
  return *found;
}

std::vector<std::size_t> inputs_of(const std::string& name, const Json& list, const Operation& operation,
                                   std::size_t nodes) {
  const bool is_concat = std::holds_alternative<op::Concat>(operation);
  const std::size_t least = std::holds_alternative<op::Add>(operation) ? 2 : 1;
  const std::size_t most = is_concat ? op::Concat::most_inputs : least;
  std::vector<std::size_t> inputs;
  for (const Json& one : list) {
    if (one.is_number_unsigned() && one.get<std::uint64_t>() < nodes) inputs.push_back(one.get<std::size_t>());
  }
  const bool is_possible = list.is_array() && list.size() >= least && list.size() <= most;
  if (!is_possible || inputs.size() != list.size()) {
    damaged(fmt::format("node '{}' reads what it cannot", name));
  }
  return inputs;
}

void add_node(NetworkGraph& graph, const Json& node, std::set<std::string>& names) {
  const bool is_node = node.is_array() && node.size() == 4 && node[0].is_string() && node[1].is_string();
  if (!is_node) damaged("it is not in the form of a network");
  const auto name = node[1].get<std::string>();
  constexpr std::size_t longest_name = 250;
  if (name.empty() || name.size() > longest_name || printable(name) != name) damaged("a node has an invalid name");
  if (!names.insert(name).second) damaged(fmt::format("two nodes have the name '{}'", name));
  NumberReader numbers(name, node[3]);
  const Operation operation = operation_of(node[0].get<std::string>(), name, numbers);
  numbers.end();
  std::vector<std::size_t> inputs = inputs_of(name, node[2], operation, graph.nodes().size());
  try {
    graph.add(name, operation, std::move(inputs));
  } catch (const Error&) {
    damaged(fmt::format("node '{}' cannot take its input's shape", name));
  }
}

// The last node is the only one that nothing reads, and gives a row.
void require_whole(const NetworkGraph& graph) {
  const std::vector<int> readers = graph.reader_counts();
  const auto unread = std::ranges::find(readers, 0);
  const GraphNode& last = graph.nodes().back();
  if (unread != readers.end() - 1) damaged("nothing reads the result of a node");
  if (!last.shape.is_row()) damaged(fmt::format("its last node '{}' gives a map", last.name));
}

}  // namespace

std::string network_text(const NetworkGraph& graph) {
  const ValueShape& images = graph.node(0).shape;
  Json nodes = Json::array();
  for (const GraphNode& node : graph.nodes()) {
    if (node.inputs.empty()) continue;
    nodes.push_back({operation_name(node.operation), node.name, node.inputs, std::visit(NumbersOf(), node.operation)});
  }
  return json_text({{"input", {images.height, images.width, images.channels}}, {"nodes", std::move(nodes)}});
}

NetworkGraph network_from_text(std::string_view text) {
  Json whole;
  try {
    whole = parse_json(text);
  } catch (const Json::exception&) {
    damaged("it is not JSON");
  }
  const auto is_list = [&](const char* name) {
    return whole.is_object() && whole.contains(name) && whole[name].is_array();
  };
  if (!is_list("input") || !is_list("nodes") || whole["nodes"].empty() || whole["nodes"].size() > most_nodes) {
    damaged("it is not in the form of a network");
  }
  NumberReader images("input", whole["input"]);
  const std::int64_t height = images.next(1, largest_side);
  const std::int64_t width = images.next(1, largest_side);
  NetworkGraph graph({height, width, images.next(1, 3)});
  images.end();
  std::set<std::string> names = {graph.node(0).name};
  for (const Json& node : whole["nodes"]) add_node(graph, node, names);
  require_whole(graph);
  return graph;
}

}  // namespace lockstep
