#include "report/network_drawing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text/counted.hpp"
#include "base/text/grouped.hpp"
#include "report/page/html.hpp"

namespace lockstep {
namespace {

// In pixels.
constexpr double row_pitch = 54;
constexpr double box_height = 40;
constexpr double drawing_margin = 8;
constexpr double lane_pitch = 9;
constexpr double corner = 5;       // radius, of arcs
constexpr double port_offset = 8;  // from a box's middle: arcs enter above it and leave below it
constexpr double largest_name_character = 8.4;
constexpr double largest_character = 7.8;
constexpr std::size_t longest_label = 46;         // characters
constexpr std::size_t longest_open_drawing = 32;  // rows

double width_of(std::string_view text, double of_character) { return of_character * static_cast<double>(text.size()); }

std::string label_of(const LayerSummary& layer) { return shortened(layer.name, longest_label); }
std::string operations_text(const LayerSummary& layer) { return fmt::format("{}", fmt::join(layer.operations, " + ")); }

std::string multiply_adds_text(double count) {
  if (count < 1e6) return grouped(std::llround(count));
  return count < 1e9 ? fmt::format("{:.1f} million", count / 1e6) : fmt::format("{:.2f} billion", count / 1e9);
}

class NetworkSvg {
 public:
  explicit NetworkSvg(const NetworkLayout& layout) : layout_(layout) {
    double shapes = 0;
    for (const LayerSummary& layer : layout.rows) {
      shapes = std::max(shapes, width_of(layer.output.text(), largest_character));
      box_width_ = std::max({box_width_, width_of(label_of(layer), largest_name_character) + 24,
                             width_of(operations_text(layer), largest_character) + 24});
      most_multiply_adds_ = std::max(most_multiply_adds_, layer.multiply_adds);
    }
    box_left_ = drawing_margin + shapes + 10;
    for (const DrawnEdge& edge : layout.edges) lanes_ = std::max(lanes_, edge.lane ? *edge.lane + 1 : 0);
  }

  std::string text() const {
    std::string svg;
    for (std::size_t row = 0, edge = 0; row < layout_.rows.size(); ++row) {
      const std::size_t first = edge;
      while (edge < layout_.edges.size() && layout_.edges[edge].from == row) ++edge;
      svg += value_svg(std::span(layout_.edges).subspan(first, edge - first)) + box_svg(row);
    }
    const double width = lane_x(lanes_) + drawing_margin;
    const double height = row_pitch * static_cast<double>(layout_.rows.size());
    return fmt::format(
        "<svg style=\"width: {0:.0f}px\" viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" aria-label=\"Network\">\n"
        "{2}</svg>\n",
        width, height, svg);
  }

 private:
  double right() const { return box_left_ + box_width_; }
  double lane_x(std::size_t lane) const { return right() + 16 + lane_pitch * static_cast<double>(lane); }
  static double middle(std::size_t row) { return row_pitch * (static_cast<double>(row) + 0.5); }

  std::string box_svg(std::size_t row) const {
    const LayerSummary& layer = layout_.rows[row];
    const double y = middle(row);
    const std::string operations = operations_text(layer);
    std::string title = escaped(layer.name);
    if (!operations.empty()) title += fmt::format(": {}", escaped(operations));
    title += fmt::format("\noutput: {}", layer.output.text());
    if (layer.parameters > 0) title += fmt::format("\nparameters: {}", grouped(layer.parameters));
    if (layer.multiply_adds > 0) title += fmt::format("\nmultiply-adds: {}", multiply_adds_text(layer.multiply_adds));
    std::string svg = fmt::format(
        "<g><title>{}</title><rect class=\"box\" rx=\"5\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" "
        "height=\"{:.0f}\"/>",
        title, box_left_, y - box_height / 2, box_width_, box_height);
    if (layer.multiply_adds > 0) {
      svg +=
          fmt::format(R"(<rect class="share" rx="5" x="{:.0f}" y="{:.0f}" width="{:.1f}" height="{:.0f}"/>)", box_left_,
                      y - box_height / 2, box_width_ * layer.multiply_adds / most_multiply_adds_, box_height);
    }
    svg += fmt::format(R"(<text class="name" x="{:.0f}" y="{:.0f}">{}</text>)", box_left_ + 12,
                       operations.empty() ? y + 5 : y - 3, escaped(label_of(layer)));
    if (!operations.empty()) {
      svg += fmt::format(R"(<text x="{:.0f}" y="{:.0f}">{}</text>)", box_left_ + 12, y + 13, escaped(operations));
    }
    return svg + fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text></g>\n", box_left_ - 10,
                             y + 5, escaped(layer.output.text()));
  }

  // The edges of one value, which light up together.
  std::string value_svg(std::span<const DrawnEdge> edges) const {
    if (edges.empty()) return "";
    const LayerSummary& from = layout_.rows[edges.front().from];
    std::string svg =
        fmt::format("<g class=\"value\"><title>{}, {}</title>", escaped(from.name), escaped(from.output.text()));
    double branch = 0;  // where the previous arc left the lane, and the next one continues
    for (const DrawnEdge& edge : edges) {
      svg += fmt::format(R"(<path class="edge" d="{}"/>)", edge.lane ? arc_path(edge, branch) : arrow_path(edge));
      if (edge.lane) branch = arc_end(edge) - corner;
    }
    return svg + "</g>\n";
  }

  std::string arrow_path(const DrawnEdge& edge) const {
    return fmt::format("M{:.0f} {:.0f}V{:.0f}m-4 -5l4 5l4 -5", box_left_ + box_width_ / 2,
                       middle(edge.from) + box_height / 2, middle(edge.to) - box_height / 2 - 1);
  }

  static double arc_end(const DrawnEdge& edge) { return middle(edge.to) - port_offset; }

  // `branch`: where the lane is left for the reader before; 0 for the first one.
  std::string arc_path(const DrawnEdge& edge, double branch) const {
    const double x = lane_x(*edge.lane);
    const std::string start = branch > 0 ? fmt::format("M{:.0f} {:.0f}", x, branch)
                                         : fmt::format("M{0:.0f} {1:.0f}H{2:.0f}q{3} 0 {3} {3}", right(),
                                                       middle(edge.from) + port_offset, x - corner, corner);
    return fmt::format("{0}V{1:.0f}q0 {2} -{2} {2}H{3:.0f}m5 -4l-5 4l5 4", start, arc_end(edge) - corner, corner,
                       right() + 1);
  }

  const NetworkLayout& layout_;
  double box_left_ = 0;
  double box_width_ = 150;
  double most_multiply_adds_ = 0;
  std::size_t lanes_ = 0;
};

}  // namespace

std::vector<std::size_t> arc_lanes(std::span<const ArcRows> arcs) {
  std::vector<std::size_t> order(arcs.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t arc) { return arcs[arc].last - arcs[arc].first; });
  std::vector<std::vector<ArcRows>> lanes;
  std::vector<std::size_t> lane_of(arcs.size());
  for (const std::size_t arc : order) {
    const auto is_free = [&](const std::vector<ArcRows>& lane) {
      return std::ranges::none_of(
          lane, [&](const ArcRows& other) { return other.first < arcs[arc].last && arcs[arc].first < other.last; });
    };
    auto lane = std::ranges::find_if(lanes, is_free);
    if (lane == lanes.end()) lane = lanes.emplace(lanes.end());
    lane->push_back(arcs[arc]);
    lane_of[arc] = static_cast<std::size_t>(lane - lanes.begin());
  }
  return lane_of;
}

NetworkLayout layout_of(const NetworkGraph& graph) {
  const std::vector<LayerSpec> layers = fuse(graph);
  NetworkLayout layout{layer_summaries(graph, layers), {}};
  std::vector<std::size_t> row_of(graph.nodes().size());  // of the nodes whose values layers give
  for (std::size_t layer = 0; layer < layers.size(); ++layer) row_of[layers[layer].output] = layer + 1;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    std::vector<std::size_t> inputs = layers[layer].inputs;
    std::ranges::sort(inputs);
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());  // the sum of a value and itself
    for (const std::size_t input : inputs) layout.edges.push_back({row_of[input], layer + 1, {}});
  }
  std::ranges::stable_sort(layout.edges, {}, &DrawnEdge::from);
  std::vector<ArcRows> arcs;  // of the rows with readers further down
  for (const DrawnEdge& edge : layout.edges) {
    if (edge.to == edge.from + 1) continue;
    if (!arcs.empty() && arcs.back().first == edge.from) {
      arcs.back().last = edge.to;
    } else {
      arcs.push_back({edge.from, edge.to});
    }
  }
  const std::vector<std::size_t> lanes = arc_lanes(arcs);
  std::size_t arc = 0;
  for (DrawnEdge& edge : layout.edges) {
    if (edge.to == edge.from + 1) continue;
    while (arcs[arc].first != edge.from) ++arc;
    edge.lane = lanes[arc];
  }
  return layout;
}

std::string network_html(const NetworkGraph& graph) {
  std::int64_t parameters = 0;
  for (std::size_t node = 0; node < graph.nodes().size(); ++node) parameters += parameter_count(graph, node);
  const std::string size =
      html_paragraph(fmt::format("Parameters: {}. Multiply-adds for an image of {}: {}.", grouped(parameters),
                                 graph.node(0).shape.text(), multiply_adds_text(multiply_adds(graph))));
  std::size_t edges = 0;
  for (const GraphNode& node : graph.nodes()) edges += node.inputs.size();
  if (graph.nodes().size() > most_drawn_nodes || edges > most_drawn_edges) {
    return size +
           html_paragraph(fmt::format("Its {} operations are too many for a drawing.", graph.nodes().size() - 1));
  }
  const NetworkLayout layout = layout_of(graph);
  const std::string figure = fmt::format(
      "<figure class=\"drawing\"><div class=\"legend\">At the left: output shapes. Shaded: multiply-adds, relative to "
      "those "
      "of the largest layer.</div>\n<div class=\"scroll\">\n{}</div></figure>\n",
      NetworkSvg(layout).text());
  const bool is_open = layout.rows.size() <= longest_open_drawing;
  return size + (is_open ? figure : html_details(counted(layout.rows.size() - 1, "layer"), figure));
}

}  // namespace lockstep
