#include "recommendation/rating_network.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "device/cpu/cpu_device.hpp"
#include "nn/initialize.hpp"

namespace lockstep::rating_network_test {

constexpr std::int64_t width = 3;
using Vector = std::vector<double>;

class Sink final : public GradientSink {
 public:
  Accumulate accumulate() const override { return Accumulate::overwrite; }
  void ready(const Parameter& parameter) override { indices.push_back(parameter.index); }
  std::vector<int> indices;
};

class RatingNetworkTest : public testing::Test {
 protected:
  RatingNetworkTest()
      : data_(make_synthetic_ratings({.users = 4, .movies = 5, .ratings = 40})),
        device_(cpu::open_cpu_device({.threads = 1})) {
    data_.catalogue.titles[1] = "";
    data_.catalogue.titles[2] = "abba";  // characters that occur twice
    data_.catalogue.titles[3] = "x";
    tables_ = make_embedding_tables(Communicator(MPI_COMM_SELF), 0, RatingNetwork::table_shapes(data_.catalogue, width),
                                    {}, 100);
    network_ = std::make_unique<RatingNetwork>(*device_, data_.catalogue, width, *tables_);
    ParameterStore& store = network_->dense_parameters();
    store.allocate(device_->make_persistent(store.gradient_buffer_count(), DType::f32));
    initialize(store, 5);
    network_->draw_embeddings(5);
  }

  std::map<std::string, std::vector<float>> weights() const {
    std::map<std::string, std::vector<float>> weights;
    for (const ParameterStore::Entry& entry : network_->dense_parameters().entries()) {
      weights[entry.name] = entry.values;
    }
    for (const DistributedTable& table : tables_->tables()) weights[table.held().name()] = table.held().values();
    return weights;
  }

  std::vector<Rating> samples() const { return {{0, 0, 1}, {1, 1, 2}, {2, 2, 3}, {3, 3, 4}, {1, 2, 5}, {1, 4, 1}}; }
  // The derivative of the tests' function of the scores.
  static double slope(std::size_t i) { return 0.1 * static_cast<double>(i + 1) * (i % 2 == 0 ? 1 : -1); }

  RatingData data_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<EmbeddingTables> tables_;
  std::unique_ptr<RatingNetwork> network_;
};

// The network once more, in double precision and without tensors.
class Oracle {
 public:
  Oracle(const std::map<std::string, std::vector<float>>& weights, const Catalogue& catalogue)
      : weights_(weights), catalogue_(catalogue) {}

  double score(const Rating& rating) const {
    const auto user_id = static_cast<std::size_t>(rating.user);
    const auto movie_id = static_cast<std::size_t>(rating.movie);
    const auto feature = [&](const std::string& name, std::int32_t row) {
      return fc(name + ".fc", embedding(name, row));
    };
    const Vector user =
        fc("user.fusion", join({feature("user.id", rating.user), feature("user.gender", catalogue_.gender[user_id]),
                                feature("user.age", catalogue_.age[user_id]),
                                feature("user.occupation", catalogue_.occupation[user_id])}));
    const auto genre = catalogue_.genres.begin() + rating.movie * catalogue_.genre_count;
    const Vector genres(genre, genre + catalogue_.genre_count);
    const Vector movie = fc("movie.fusion", join({feature("movie.id", rating.movie), title(catalogue_.titles[movie_id]),
                                                  fc("movie.genres.fc2", fc("movie.genres.fc1", genres))}));
    double both = 0;
    double users = 0;
    double movies = 0;
    for (std::size_t i = 0; i < user.size(); ++i) {
      both += user[i] * movie[i];
      users += user[i] * user[i];
      movies += movie[i] * movie[i];
    }
    return 5 * both / std::sqrt(users * movies);
  }

 private:
  Vector embedding(const std::string& name, std::int32_t row) const {
    const auto first = weights_.at(name + ".embedding").begin() + row * width;
    return {first, first + width};
  }
  Vector fc(const std::string& name, const Vector& x) const {
    const std::vector<float>& weight = weights_.at(name + ".weight");
    const std::vector<float>& bias = weights_.at(name + ".bias");
    Vector y(bias.begin(), bias.end());
    for (std::size_t out = 0; out < y.size(); ++out) {
      for (std::size_t in = 0; in < x.size(); ++in) y[out] += static_cast<double>(weight[out * x.size() + in]) * x[in];
      y[out] = std::tanh(y[out]);
    }
    return y;
  }
  static Vector join(const std::vector<Vector>& parts) {
    Vector joined;
    for (const Vector& part : parts) joined.insert(joined.end(), part.begin(), part.end());
    return joined;
  }
  Vector title(const std::string& text) const {
    const int places = std::max(1, static_cast<int>(text.size()));
    Vector mean(width);
    for (int place = 0; place < places; ++place) {
      std::vector<Vector> window;
      for (int at = place - 2; at <= place + 2; ++at) {
        const bool is_inside = at >= 0 && at < static_cast<int>(text.size());
        window.push_back(is_inside ? embedding("movie.title", text[static_cast<std::size_t>(at)]) : Vector(width));
      }
      const Vector y = fc("movie.title.fc", join(window));
      for (std::size_t i = 0; i < y.size(); ++i) mean[i] += y[i] / places;
    }
    return mean;
  }

  const std::map<std::string, std::vector<float>>& weights_;
  const Catalogue& catalogue_;
};

TEST_F(RatingNetworkTest, scores_are_those_of_plain_loops) {
  const auto weights = this->weights();
  const Oracle oracle(weights, data_.catalogue);
  const std::vector<float> scores = network_->forward(samples(), Mode::evaluate);
  ASSERT_EQ(scores.size(), 6U);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(scores[i]), oracle.score(samples()[i]), 1e-5) << i;
  }
}

TEST_F(RatingNetworkTest, gradients_are_central_differences) {
  std::vector<float> d_scores;
  for (std::size_t i = 0; i < samples().size(); ++i) d_scores.push_back(static_cast<float>(slope(i)));
  const std::span<RowSums> sums = tables_->sums();
  network_->forward(samples(), Mode::train);
  Sink sink;
  network_->backward(d_scores, sink, sums);

  std::map<std::string, std::vector<float>> gradients;
  const ParameterStore& store = network_->dense_parameters();
  for (const ParameterStore::Entry& entry : store.entries_of(store.gradients())) gradients[entry.name] = entry.values;
  std::size_t number = 0;
  for (const DistributedTable& distributed : tables_->tables()) {
    const RowTable& table = distributed.held();
    std::vector<float>& of_table = gradients[table.name()];
    of_table.resize(static_cast<std::size_t>(table.rows() * table.width()));
    const RowGradients rows = sums[number++].gradients();
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      std::copy_n(rows.values.begin() + static_cast<std::ptrdiff_t>(i) * width, width,
                  of_table.begin() + rows.rows[i] * width);
    }
  }

  auto weights = this->weights();
  ASSERT_EQ(gradients.size(), weights.size());
  const Oracle oracle(weights, data_.catalogue);
  const auto target = [&] {
    double sum = 0;
    for (std::size_t i = 0; i < samples().size(); ++i) sum += oracle.score(samples()[i]) * slope(i);
    return sum;
  };
  for (auto& [name, values] : weights) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float kept = values[i];
      constexpr float step = 0x1p-10F;
      values[i] = kept + step;
      const double above = target();
      values[i] = kept - step;
      const double below = target();
      values[i] = kept;
      ASSERT_NEAR(static_cast<double>(gradients[name][i]), (above - below) * 0x1p9, 1e-4) << name << " " << i;
    }
  }
}

TEST_F(RatingNetworkTest, gradients_are_reported_in_reverse_order_and_rows_are_those_of_the_batch) {
  const std::span<RowSums> sums = tables_->sums();
  const std::vector<Rating> batch{{1, 2, 5}, {1, 3, 4}};
  network_->forward(batch, Mode::train);
  Sink sink;
  network_->backward(std::vector<float>{1, 1}, sink, sums);
  std::vector<int> expected(network_->dense_parameters().parameters().size());
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<int>(expected.size() - 1 - i);
  EXPECT_EQ(sink.indices, expected);
  EXPECT_THAT(sums[0].gradients().rows, testing::ElementsAre(1));
  EXPECT_THAT(sums[4].gradients().rows, testing::ElementsAre(2, 3));
  EXPECT_THAT(sums[5].gradients().rows, testing::ElementsAre('a', 'b', 'x'));
}

}  // namespace lockstep::rating_network_test
