#include "network/network_text.hpp"

#include <fmt/format.h>

#include <algorithm>
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
using Numbers = std::vector<std::int64_t>;

constexpr std::size_t most_nodes = 40'000;
constexpr std::int64_t largest_side = 65536;  // of images, windows and strides
constexpr std::int64_t most_channels = std::int64_t{1} << 31;
constexpr std::int64_t largest_pool = 15;

[[noreturn]] void damaged(const std::string& what) {
  throw Error(Failure::bad_data, fmt::format("the description of its network is damaged: {}.", what));
}

struct NumbersOf {
  Numbers operator()(const op::Input&) const { return {}; }
  Numbers operator()(const op::Convolution& one) const {
    return {one.conv.in_channels, one.conv.out_channels, one.conv.kernel,
            one.conv.stride,      one.conv.padding,      one.has_bias ? 1 : 0};
  }
  Numbers operator()(const op::BatchNorm&) const { return {}; }
  Numbers operator()(const op::Relu&) const { return {}; }
  Numbers operator()(const op::Add&) const { return {}; }
  Numbers operator()(const op::MaxPool& one) const { return {one.pool.kernel, one.pool.stride, one.pool.padding}; }
  Numbers operator()(const op::Blur& one) const { return {one.stride}; }
  Numbers operator()(const op::Subsample& one) const { return {one.stride, one.out_channels}; }
  Numbers operator()(const op::GlobalMeanPool&) const { return {}; }
  Numbers operator()(const op::Flatten&) const { return {}; }
  Numbers operator()(const op::Linear& one) const { return {one.in, one.out}; }
};

// Reads the numbers of a node in order, each with its bounds.
class NumberReader {
 public:
  NumberReader(const std::string& name, const Json& numbers) : name_(name), numbers_(numbers) {
    if (!numbers.is_array()) refuse();
  }
  std::int64_t next(std::int64_t least, std::int64_t most) {
    if (at_ >= numbers_.size() || !numbers_[at_].is_number_integer()) refuse();
    const auto value = numbers_[at_++].get<std::int64_t>();
    if (value < least || value > most) refuse();
    return value;
  }
  void end() const {
    if (at_ != numbers_.size()) refuse();
  }

 private:
  [[noreturn]] void refuse() const { damaged(fmt::format("node '{}' has impossible numbers", name_)); }

  const std::string& name_;
  const Json& numbers_;
  std::size_t at_ = 0;
};

Operation operation_of(const std::string& kind, const std::string& name, NumberReader& numbers) {
  const auto is = [&](const Operation& one) { return kind == operation_name(one); };
  if (is(op::Convolution{})) {
    op::Convolution one;
    one.conv.in_channels = numbers.next(1, most_channels);
    one.conv.out_channels = numbers.next(1, most_channels);
    one.conv.kernel = numbers.next(1, largest_side);
    one.conv.stride = numbers.next(1, largest_side);
    one.conv.padding = numbers.next(0, one.conv.kernel - 1);
    one.has_bias = numbers.next(0, 1) != 0;
    return one;
  }
  if (is(op::MaxPool{})) {
    op::MaxPool one{};
    one.pool.kernel = numbers.next(1, largest_pool);
    one.pool.stride = numbers.next(1, largest_side);
    one.pool.padding = numbers.next(0, one.pool.kernel - 1);
    return one;
  }
  if (is(op::Blur{})) return op::Blur{numbers.next(1, 2)};
  if (is(op::Subsample{})) {
    const std::int64_t stride = numbers.next(1, largest_side);
    return op::Subsample{stride, numbers.next(1, most_channels)};
  }
  if (is(op::Linear{})) {
    const std::int64_t in = numbers.next(1, most_channels);
    return op::Linear{in, numbers.next(1, most_channels)};
  }
  const std::vector<Operation> others = {op::BatchNorm{}, op::Relu{}, op::Add{}, op::GlobalMeanPool{}, op::Flatten{}};
  const auto found = std::ranges::find(others, kind, operation_name);
  if (found == others.end()) damaged(fmt::format("node '{}' has an unknown operation", name));
  return *found;
}

std::vector<std::size_t> inputs_of(const std::string& name, const Json& list, const Operation& operation,
                                   std::size_t nodes) {
  const std::size_t count = std::holds_alternative<op::Add>(operation) ? 2 : 1;
  std::vector<std::size_t> inputs;
  for (const Json& one : list) {
    if (!one.is_number_unsigned() || one.get<std::uint64_t>() >= nodes)
      inputs.clear();
    else
      inputs.push_back(one.get<std::size_t>());
  }
  if (!list.is_array() || list.size() != count || inputs.size() != count) {
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
  return graph;
}

}  // namespace lockstep
