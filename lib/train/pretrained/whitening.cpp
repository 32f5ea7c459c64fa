#include "train/pretrained/whitening.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "dataset/loading/augmented_reader.hpp"
#include "dataset/loading/normalizer.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t most_images = 5000;
constexpr std::int64_t most_products = 1'000'000'000;  // about a second

const GraphNode& first_convolution(const NetworkGraph& graph) {
  const auto reads_images = [](const GraphNode& node) {
    return node.as<op::Convolution>() != nullptr && node.inputs.front() == 0;
  };
  return *std::ranges::find_if(graph.nodes(), reads_images);
}

// In the order of a filter's weights: channel, row, column.
std::size_t values_in_window(const Conv2d& conv) {
  return static_cast<std::size_t>(conv.in_channels * conv.kernel.area());
}

// Sums, over all windows of an image [c, h, w], the products of a window's values with each other. Above the diagonal.
class WindowProducts {
 public:
  WindowProducts(const Conv2d& conv, const PictureSize& size)
      : conv_(conv), size_(size), window_(values_in_window(conv)), sums_(window_.size() * window_.size()) {}

  void add(std::span<const float> image) {
    for (std::int64_t row = 0; row + conv_.kernel.height <= size_.height; ++row) {
      for (std::int64_t column = 0; column + conv_.kernel.width <= size_.width; ++column) {
        copy_window(image, row, column);
        add_window();
      }
    }
  }

  std::vector<double> means() const {
    const std::size_t n = window_.size();
    std::vector<double> means(sums_.size());
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = i; j < n; ++j) means[i * n + j] = means[j * n + i] = sums_[i * n + j] / windows_;
    }
    return means;
  }

 private:
  void copy_window(std::span<const float> image, std::int64_t row, std::int64_t column) {
    std::size_t value = 0;
    for (std::int64_t channel = 0; channel < conv_.in_channels; ++channel) {
      for (std::int64_t y = 0; y < conv_.kernel.height; ++y) {
        const std::int64_t first = (channel * size_.height + row + y) * size_.width + column;
        for (std::int64_t x = 0; x < conv_.kernel.width; ++x) {
          window_[value++] = double{image[static_cast<std::size_t>(first + x)]};
        }
      }
    }
  }

  void add_window() {
    const std::size_t n = window_.size();
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = i; j < n; ++j) sums_[i * n + j] += window_[i] * window_[j];
    }
    windows_ += 1;
  }

  Conv2d conv_;
  PictureSize size_;
  std::vector<double> window_;
  std::vector<double> sums_;
  double windows_ = 0;
};

// Eigenvalues and orthonormal eigenvectors of a symmetric matrix by cyclic Jacobi rotations (Golub and Van Loan,
// "Matrix computations", section 8.5).
class SymmetricEigen {
 public:
  SymmetricEigen(std::vector<double> matrix, std::size_t n) : a_(std::move(matrix)), n_(n), vectors_(n * n) {
    for (std::size_t i = 0; i < n; ++i) vectors_[i * n + i] = 1;
    constexpr int most_sweeps = 64;  // it converges quadratically: about 10 suffice
    for (int sweep = 0; sweep < most_sweeps && !is_diagonal(); ++sweep) {
      for (std::size_t p = 0; p < n; ++p) {
        for (std::size_t q = p + 1; q < n; ++q) rotate(p, q);
      }
    }
  }

  double value(std::size_t k) const { return a_[k * n_ + k]; }
  double vector(std::size_t k, std::size_t i) const { return vectors_[i * n_ + k]; }

 private:
  bool is_diagonal() const {
    double off = 0;
    double all = 0;
    for (std::size_t i = 0; i < a_.size(); ++i) {
      all += a_[i] * a_[i];
      if (i / n_ != i % n_) off += a_[i] * a_[i];
    }
    return off <= all * 1e-28;
  }

  void rotate(std::size_t p, std::size_t q) {
    const double off = a_[p * n_ + q];
    if (off == 0) return;
    const double theta = (a_[q * n_ + q] - a_[p * n_ + p]) / (2 * off);
    const double tangent = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
    const double cosine = 1 / std::sqrt(tangent * tangent + 1);
    const double sine = tangent * cosine;
    const auto turn = [&](double& x, double& y) {
      const double before = x;
      x = cosine * before - sine * y;
      y = sine * before + cosine * y;
    };
    for (std::size_t i = 0; i < n_; ++i) turn(a_[i * n_ + p], a_[i * n_ + q]);
    for (std::size_t i = 0; i < n_; ++i) turn(a_[p * n_ + i], a_[q * n_ + i]);
    for (std::size_t i = 0; i < n_; ++i) turn(vectors_[i * n_ + p], vectors_[i * n_ + q]);
  }

  std::vector<double> a_;
  std::size_t n_;
  std::vector<double> vectors_;  // by columns
};

std::vector<double> mean_products(const Conv2d& conv, const Dataset& train, const ImageRules& rules) {
  WindowProducts products(conv, rules.size);
  const Manifest& manifest = train.manifest();
  const Normalizer normalizer(manifest.mean, manifest.deviation);
  std::vector<float> image(static_cast<std::size_t>(conv.in_channels * rules.size.height * rules.size.width));
  AugmentedReader reader(train, rules);
  const auto values = static_cast<std::int64_t>(values_in_window(conv));
  const std::int64_t of_image = rules.size.height * rules.size.width * values * values;
  const std::int64_t images =
      std::min({train.samples(), most_images, std::max<std::int64_t>(1, most_products / of_image)});
  for (std::int64_t i = 0; i < images; ++i) {
    const std::int64_t sample = i * train.samples() / images;
    train.begin_reading(sample, 0);
    normalizer.write(reader.read(sample, center_crop(rules, train.picture_size(sample))), image);
    products.add(image);
  }
  return products.means();
}

}  // namespace

std::string whitened_weight(const ModelOptions& options) {
  const NetworkGraph graph = model_graph(options);
  const GraphNode& node = first_convolution(graph);
  const Conv2d& conv = node.as<op::Convolution>()->conv;
  const auto needed = 2 * static_cast<std::int64_t>(values_in_window(conv));
  require(
      conv.out_channels == needed, Failure::usage,
      "--whiten needs a first convolution with two outputs for each value of its window, here {}, but '{}' of model "
      "'{}' has {}. Use --model airbench, or leave out --whiten.",
      needed, node.name, options.name, conv.out_channels);
  return node.name + ".weight";
}

std::vector<float> whitening_filters(std::vector<double> products, std::size_t n, double epsilon) {
  assert(products.size() == n * n);
  const SymmetricEigen eigen(std::move(products), n);
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return eigen.value(a) > eigen.value(b); });
  std::vector<float> filters(2 * n * n);
  for (std::size_t k = 0; k < n; ++k) {
    const double size = std::sqrt(std::max(eigen.value(order[k]), 0.0) + epsilon);
    for (std::size_t i = 0; i < n; ++i) {
      const auto weight = static_cast<float>(eigen.vector(order[k], i) / size);
      filters[k * n + i] = weight;
      filters[(n + k) * n + i] = -weight;
    }
  }
  return filters;
}

void whiten(Model& model, const Dataset& train, const ImageRules& rules) {
  const std::string name = whitened_weight(model.options);
  const NetworkGraph graph = model_graph(model.options);
  const Conv2d& conv = first_convolution(graph).as<op::Convolution>()->conv;
  const std::vector<float> filters =
      whitening_filters(mean_products(conv, train, without_augmentation(rules)), values_in_window(conv));
  const auto weight = std::ranges::find(model.store.parameters(), name, &Parameter::name);
  model.store.device().store(weight->kind, weight->dims, filters, weight->value);
}

}  // namespace lockstep
