#include "recommendation/rating_network.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <iterator>

#include "base/random.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t context = 5;  // characters in a window, of which the middle one is at the window's place
// Places of the tables in table_shapes().
struct Place {
  enum : std::size_t { user_id, user_gender, user_age, user_occupation, movie_id, movie_title, count };
};

constexpr float cosine_scale = 5;
// Smallest product of two lengths, as in torch.nn.functional.cosine_similarity.
constexpr double least_lengths = 1e-8;

struct Products {
  double both = 0;  // a * b
  double a = 0;     // a * a
  double b = 0;     // b * b
  double lengths() const { return std::max(std::sqrt(a * b), least_lengths); }
};

Products products_of(const float* a, const float* b, std::int64_t count) {
  Products products;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(a[i]);
    const auto y = static_cast<double>(b[i]);
    products.both += x * y;
    products.a += x * x;
    products.b += y * y;
  }
  return products;
}

std::span<const float> row_of(const Tensor& matrix, std::int64_t row) {
  const std::int64_t width = matrix.shape()[1];
  return {matrix.as<float>() + row * width, static_cast<std::size_t>(width)};
}

}  // namespace

RatingNetwork::FullyConnected::FullyConnected(const LayerContext& layers, const std::string& name, std::int64_t in,
                                              std::int64_t out)
    : linear(layers, name, {in, out}, Activation::none), activate(layers, {Curve::Kind::tanh}) {}

Tensor RatingNetwork::FullyConnected::forward(const Tensor& x, Mode mode) {
  Layer& first = linear;
  Layer& second = activate;
  const std::array<NormedMap, 1> in{{{x}}};
  const std::array<NormedMap, 1> between{first.forward(in, mode)};
  return second.forward(between, mode).x;
}

Tensor RatingNetwork::FullyConnected::backward(const Tensor& dy, GradientSink& sink) {
  Layer& first = linear;
  Layer& second = activate;
  std::array<InputGradient, 1> between;
  second.backward(dy, between, sink);
  std::array<InputGradient, 1> out;
  first.backward(between[0].result, out, sink);
  return out[0].result;
}

std::vector<TableShape> RatingNetwork::table_shapes(const Catalogue& catalogue, std::int64_t width) {
  return {
      {"user.id.embedding", catalogue.users(), width},   {"user.gender.embedding", Catalogue::genders, width},
      {"user.age.embedding", Catalogue::ages, width},    {"user.occupation.embedding", Catalogue::occupations, width},
      {"movie.id.embedding", catalogue.movies(), width}, {"movie.title.embedding", Catalogue::characters, width}};
}

std::int64_t RatingNetwork::terms_per_sample(const Catalogue& catalogue) {
  std::size_t longest = 1;
  for (const std::string& title : catalogue.titles) longest = std::max(longest, title.size());
  return static_cast<std::int64_t>(longest);
}

RatingNetwork::RatingNetwork(Device& device, const Catalogue& catalogue, std::int64_t width, EmbeddingTables& tables)
    : device_(device), catalogue_(catalogue), width_(width), tables_(tables), store_(device) {
  assert(tables.tables().size() == Place::count);
  const LayerContext layers{device, store_, no_statistics_};
  user_features_.emplace_back(layers, Place::user_id, "user.id.fc", width);
  user_features_.emplace_back(layers, Place::user_gender, "user.gender.fc", width);
  user_features_.emplace_back(layers, Place::user_age, "user.age.fc", width);
  user_features_.emplace_back(layers, Place::user_occupation, "user.occupation.fc", width);
  user_fusion_ = std::make_unique<FullyConnected>(layers, "user.fusion", 4 * width, width);
  movie_id_ = std::make_unique<Feature>(layers, Place::movie_id, "movie.id.fc", width);
  title_ = std::make_unique<FullyConnected>(layers, "movie.title.fc", context * width, width);
  genres_ = std::make_unique<FullyConnected>(layers, "movie.genres.fc1", catalogue.genre_count, width);
  genres_again_ = std::make_unique<FullyConnected>(layers, "movie.genres.fc2", width, width);
  movie_fusion_ = std::make_unique<FullyConnected>(layers, "movie.fusion", 3 * width, width);
}

void RatingNetwork::draw_embeddings(std::uint64_t seed) {
  const float deviation = 1 / std::sqrt(static_cast<float>(width_));
  std::int64_t number = 1;  // of the table
  for (DistributedTable& table : tables_.tables()) {
    const std::uint64_t stream = stream_counter(Stream::weights, number++);
    table.fill([&](std::int64_t i) {
      const auto bits = philox(seed, stream, static_cast<std::uint64_t>(i));
      return deviation * normal(bits[0], bits[1]);
    });
  }
}

RowLists RatingNetwork::rows_of(std::span<const Rating> samples) const {
  RowLists rows(Place::count);
  for (const Rating& rating : samples) {
    const auto user = static_cast<std::size_t>(rating.user);
    rows[Place::user_id].push_back(rating.user);
    rows[Place::user_gender].push_back(catalogue_.gender[user]);
    rows[Place::user_age].push_back(catalogue_.age[user]);
    rows[Place::user_occupation].push_back(catalogue_.occupation[user]);
    rows[Place::movie_id].push_back(rating.movie);
    for (const char character : catalogue_.titles[static_cast<std::size_t>(rating.movie)]) {
      rows[Place::movie_title].push_back(static_cast<unsigned char>(character));
    }
  }
  return rows;
}

Tensor RatingNetwork::make(std::int64_t rows, std::int64_t columns) {
  return device_.make({rows, columns}, DType::f32, Layout::plain);
}

Tensor RatingNetwork::join(std::span<const Tensor> parts) {
  const std::int64_t samples = parts[0].shape()[0];
  const Tensor joined = make(samples, std::ssize(parts) * width_);
  float* to = joined.as<float>();
  for (std::int64_t i = 0; i < samples; ++i) {
    for (const Tensor& part : parts) to = std::ranges::copy(row_of(part, i), to).out;
  }
  return joined;
}

std::vector<Tensor> RatingNetwork::divide(const Tensor& joined) {
  const std::int64_t samples = joined.shape()[0];
  std::vector<Tensor> parts;
  for (std::int64_t part = 0; part < joined.shape()[1] / width_; ++part) {
    parts.push_back(make(samples, width_));
    for (std::int64_t i = 0; i < samples; ++i) {
      std::copy_n(row_of(joined, i).data() + part * width_, width_, parts.back().as<float>() + i * width_);
    }
  }
  return parts;
}

Tensor RatingNetwork::forward(Feature& feature, Mode mode) {
  const std::vector<std::int64_t>& rows = rows_[feature.table];
  const Tensor values = make(std::ssize(rows), width_);
  tables_.fetch(feature.table, rows, {values.as<float>(), rows.size() * static_cast<std::size_t>(width_)});
  return feature.fc.forward(values, mode);
}

void RatingNetwork::backward(Feature& feature, const Tensor& dy, GradientSink& sink, std::span<RowSums> sums) {
  const Tensor dx = feature.fc.backward(dy, sink);
  std::int64_t i = 0;
  for (const std::int64_t row : rows_[feature.table]) sums[feature.table].add(row, row_of(dx, i++));
}

// A window for each character. An empty title has one window, of zeros.
Tensor RatingNetwork::title_forward(std::span<const Rating> samples, Mode mode) {
  title_sizes_.clear();
  std::int64_t windows = 0;
  for (const Rating& rating : samples) {
    const std::string& title = catalogue_.titles[static_cast<std::size_t>(rating.movie)];
    title_sizes_.push_back(std::ssize(title));
    windows += std::max<std::int64_t>(1, std::ssize(title));
  }
  std::vector<float> characters(rows_[Place::movie_title].size() * static_cast<std::size_t>(width_));
  tables_.fetch(Place::movie_title, rows_[Place::movie_title], characters);

  const Tensor x = make(windows, context * width_);
  float* to = x.as<float>();
  const float* of_title = characters.data();
  for (const std::int64_t size : title_sizes_) {
    for (std::int64_t place = 0; place < std::max<std::int64_t>(1, size); ++place) {
      for (std::int64_t at = place - context / 2; at <= place + context / 2; ++at, to += width_) {
        const bool is_inside = at >= 0 && at < size;
        is_inside ? std::copy_n(of_title + at * width_, width_, to) : std::fill_n(to, width_, 0.0F);
      }
    }
    of_title += size * width_;
  }

  const Tensor y = title_->forward(x, mode);
  const Tensor means = make(std::ssize(samples), width_);
  const float* from = y.as<float>();
  float* mean = means.as<float>();
  for (const std::int64_t size : title_sizes_) {
    const std::int64_t places = std::max<std::int64_t>(1, size);
    std::fill_n(mean, width_, 0.0F);
    for (std::int64_t place = 0; place < places; ++place, from += width_) {
      for (std::int64_t i = 0; i < width_; ++i) mean[i] += from[i];
    }
    for (std::int64_t i = 0; i < width_; ++i) mean[i] /= static_cast<float>(places);
    mean += width_;
  }
  return means;
}

void RatingNetwork::title_backward(const Tensor& dy, GradientSink& sink, RowSums& sums) {
  std::int64_t windows = 0;
  for (const std::int64_t size : title_sizes_) windows += std::max<std::int64_t>(1, size);
  const Tensor d_windows = make(windows, width_);
  float* to = d_windows.as<float>();
  for (std::int64_t sample = 0; sample < std::ssize(title_sizes_); ++sample) {
    const std::int64_t places = std::max<std::int64_t>(1, title_sizes_[static_cast<std::size_t>(sample)]);
    for (std::int64_t place = 0; place < places; ++place) {
      for (const float value : row_of(dy, sample)) *to++ = value / static_cast<float>(places);
    }
  }
  const Tensor dx = title_->backward(d_windows, sink);

  // Each character takes part in up to five windows of its title.
  std::vector<float> d_character(static_cast<std::size_t>(width_));
  std::int64_t window = 0;
  auto row = rows_[Place::movie_title].begin();
  for (const std::int64_t size : title_sizes_) {
    for (std::int64_t at = 0; at < size; ++at) {
      std::ranges::fill(d_character, 0.0F);
      for (std::int64_t place = std::max<std::int64_t>(0, at - context / 2);
           place <= std::min(size - 1, at + context / 2); ++place) {
        const float* from = row_of(dx, window + place).data() + (at - place + context / 2) * width_;
        for (float& value : d_character) value += *from++;
      }
      sums.add(*row++, d_character);
    }
    window += std::max<std::int64_t>(1, size);
  }
}

Tensor RatingNetwork::genres_of(std::span<const Rating> samples) {
  const std::int64_t count = catalogue_.genre_count;
  const Tensor genres = make(std::ssize(samples), count);
  float* to = genres.as<float>();
  for (const Rating& rating : samples) {
    to = std::copy_n(catalogue_.genres.begin() + rating.movie * count, count, to);
  }
  return genres;
}

std::vector<float> RatingNetwork::forward(std::span<const Rating> samples, Mode mode) {
  assert(!samples.empty());
  rows_ = rows_of(samples);
  std::vector<Tensor> of_user;
  for (Feature& feature : user_features_) of_user.push_back(forward(feature, mode));
  user_vectors_ = user_fusion_->forward(join(of_user), mode);
  std::vector<Tensor> of_movie{forward(*movie_id_, mode), title_forward(samples, mode)};
  of_movie.push_back(genres_again_->forward(genres_->forward(genres_of(samples), mode), mode));
  movie_vectors_ = movie_fusion_->forward(join(of_movie), mode);
  std::vector<float> scores;
  for (std::int64_t i = 0; i < std::ssize(samples); ++i) {
    const Products products = products_of(row_of(user_vectors_, i).data(), row_of(movie_vectors_, i).data(), width_);
    scores.push_back(cosine_scale * static_cast<float>(products.both / products.lengths()));
  }
  return scores;
}

// The gradient of cosine c for a is b / (|a| |b|) - c a / |a|^2, and likewise for b. Two vectors whose lengths have a
// product below the smallest one have no second term.
void RatingNetwork::backward(std::span<const float> d_scores, GradientSink& sink, std::span<RowSums> sums) {
  const Tensor d_user = make(std::ssize(d_scores), width_);
  const Tensor d_movie = make(std::ssize(d_scores), width_);
  for (std::int64_t sample = 0; sample < std::ssize(d_scores); ++sample) {
    const float* const a = row_of(user_vectors_, sample).data();
    const float* const b = row_of(movie_vectors_, sample).data();
    const Products products = products_of(a, b, width_);
    const double lengths = products.lengths();
    const double slope = static_cast<double>(cosine_scale * d_scores[static_cast<std::size_t>(sample)]);
    const bool is_tiny = lengths <= least_lengths;
    const double of_a = is_tiny ? 0 : products.both / lengths / products.a;
    const double of_b = is_tiny ? 0 : products.both / lengths / products.b;
    for (std::int64_t i = 0; i < width_; ++i) {
      const auto x = static_cast<double>(a[i]);
      const auto y = static_cast<double>(b[i]);
      d_user.as<float>()[sample * width_ + i] = static_cast<float>(slope * (y / lengths - of_a * x));
      d_movie.as<float>()[sample * width_ + i] = static_cast<float>(slope * (x / lengths - of_b * y));
    }
  }
  // In reverse order of forward.
  const std::vector<Tensor> of_movie = divide(movie_fusion_->backward(d_movie, sink));
  genres_->backward(genres_again_->backward(of_movie[2], sink), sink);
  title_backward(of_movie[1], sink, sums[Place::movie_title]);
  backward(*movie_id_, of_movie[0], sink, sums);
  const std::vector<Tensor> of_user = divide(user_fusion_->backward(d_user, sink));
  for (std::size_t i = user_features_.size(); i-- > 0;) backward(user_features_[i], of_user[i], sink, sums);
}

}  // namespace lockstep
