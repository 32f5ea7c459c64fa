#include "recommendation/movielens.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/io/text_lines.hpp"
#include "base/random.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"
#include "dataset/loading/sampler.hpp"
#include "recommendation/rating_shards.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_file = std::size_t{4} << 30;
constexpr std::array<std::int64_t, Catalogue::ages> first_ages{1, 18, 25, 35, 45, 50, 56};
constexpr std::int64_t train_to_test = 10;

// The form of a file's lines.
struct LineForm {
  std::string_view text;  // for messages
  std::string_view separator;
  std::size_t fields;
};

// One line of a file, with its place for messages.
class Line {
 public:
  Line(const fs::path& file, std::int64_t number, std::string_view text, const LineForm& form)
      : file_(file), number_(number), text_(text), form_(form) {
    for (std::size_t first = 0;;) {
      const std::size_t end = text.find(form.separator, first);
      fields_.push_back(text.substr(first, std::min(end, text.size()) - first));
      if (end == std::string_view::npos) break;
      first = end + form.separator.size();
    }
    require_that(fields_.size() == form.fields, fmt::format("its number of fields is {}", fields_.size()));
  }

  std::string_view field(std::size_t index) const { return fields_[index]; }
  void require_that(bool condition, std::string_view fault) const {
    require(condition, Failure::bad_data, "line {} of '{}' does not have the form {}: {}: '{}'. Correct or remove it.",
            number_, file_.string(), form_.text, fault, printable(text_.substr(0, 80)));
  }
  template <class Number>
  Number number(std::size_t index, Number least, Number most) const {
    const std::optional<Number> number = parse_number<Number>(field(index), {least, most});
    require_that(number.has_value(), not_a_number_message<Number>(field(index), {least, most}));
    return number.value_or(least);
  }
  int id(std::size_t index) const { return number<int>(index, 0, static_cast<int>(max_rating_ids - 1)); }

 private:
  const fs::path& file_;
  std::int64_t number_;
  std::string_view text_;
  const LineForm& form_;
  std::vector<std::string_view> fields_;
};

struct FileForm {
  const char* file;
  LineForm line;
};
struct Form {
  std::string name;
  FileForm ratings;
  FileForm users;
  FileForm movies;
};
constexpr std::size_t old_genres = 19;
constexpr std::size_t first_old_genre = 5;  // its field

Form colon_form() {
  return {"movielens-1m",
          {"ratings.dat", {"UserID::MovieID::Rating::Timestamp", "::", 4}},
          {"users.dat", {"UserID::Gender::Age::Occupation::Zip-code", "::", 5}},
          {"movies.dat", {"MovieID::Title::Genres", "::", 3}}};
}
Form tab_form() {
  return {"movielens-100k",
          {"u.data", {"user, item, rating and timestamp, separated by tabs", "\t", 4}},
          {"u.user", {"id|age|gender|occupation|zip code", "|", 5}},
          {"u.item",
           {"id|title|release date|video release date|URL|19 genres, each 0 or 1", "|", first_old_genre + old_genres}}};
}

template <class Take>
void for_each(const fs::path& folder, const FileForm& form, const Take& take) {
  const fs::path file = folder / form.file;
  for_each_line(file, largest_file,
                [&](std::int64_t number, std::string_view text) { take(Line(file, number, text, form.line)); });
}

// "2001: A Space Odyssey (1968)" becomes "2001: A Space Odyssey".
std::string without_year(std::string_view title) {
  const std::size_t open = title.rfind('(');
  if (!title.ends_with(')') || open == std::string_view::npos) return std::string(title);
  const std::string_view year = title.substr(open + 1, title.size() - open - 2);
  const bool is_year = !year.empty() && std::ranges::all_of(year, [](char c) { return c >= '0' && c <= '9'; });
  if (!is_year) return std::string(title);
  title = title.substr(0, open);
  while (title.ends_with(' ')) title.remove_suffix(1);
  return std::string(title);
}

class Reader {
 public:
  explicit Reader(const fs::path& folder) : folder_(folder), form_(form_in(folder)) {}

  RatingData read(std::uint64_t seed) {
    data_.name = form_.name;
    is_colon_form() ? read_users() : read_old_users();
    is_colon_form() ? read_movies() : read_old_movies();
    read_ratings(seed);
    return std::move(data_);
  }

 private:
  static Form form_in(const fs::path& folder) {
    for (Form form : {colon_form(), tab_form()}) {
      if (!is_absent(folder / form.ratings.file)) return form;
    }
    throw Error(Failure::usage, fmt::format("'{}' has neither 'ratings.dat' (MovieLens 1M) nor 'u.data' (MovieLens "
                                            "100k). Name the folder of the unpacked files with --source.",
                                            folder.string()));
  }
  bool is_colon_form() const { return form_.users.line.separator == "::"; }

  void add_user(const Line& line, int id, std::string_view gender, std::int64_t age, std::int32_t occupation) {
    Catalogue& catalogue = data_.catalogue;
    if (id >= catalogue.users()) {
      catalogue.gender.resize(static_cast<std::size_t>(id) + 1);
      catalogue.age.resize(catalogue.gender.size());
      catalogue.occupation.resize(catalogue.gender.size());
      has_user_.resize(catalogue.gender.size());
    }
    const auto at = static_cast<std::size_t>(id);
    line.require_that(!has_user_[at], "an earlier line has the same user");
    line.require_that(gender == "F" || gender == "M", "the gender is neither F nor M");
    has_user_[at] = true;
    catalogue.gender[at] = gender == "M" ? 1 : 0;
    const auto group = std::ranges::upper_bound(first_ages, std::max(age, first_ages[0]));
    catalogue.age[at] = static_cast<std::int32_t>(group - first_ages.begin()) - 1;
    catalogue.occupation[at] = occupation;
  }

  void read_users() {
    for_each(folder_, form_.users, [&](const Line& line) {
      const int age = line.number<int>(2, 0, 200);
      add_user(line, line.id(0), line.field(1), age, line.number<int>(3, 0, Catalogue::occupations - 1));
    });
  }
  // Occupations are names there. They are numbered in the order of their first use.
  void read_old_users() {
    std::map<std::string, std::int32_t, std::less<>> occupations;
    for_each(folder_, form_.users, [&](const Line& line) {
      const auto next = static_cast<std::int32_t>(occupations.size());
      const std::int32_t occupation = occupations.try_emplace(std::string(line.field(3)), next).first->second;
      line.require_that(occupation < Catalogue::occupations, "it has the 22nd occupation");
      add_user(line, line.id(0), line.field(2), line.number<int>(1, 0, 200), occupation);
    });
  }

  void add_movie(const Line& line, std::string_view title, std::vector<std::size_t> genres) {
    Catalogue& catalogue = data_.catalogue;
    const auto id = static_cast<std::size_t>(line.id(0));
    if (id >= catalogue.titles.size()) {
      catalogue.titles.resize(id + 1);
      genres_.resize(id + 1);
      has_movie_.resize(id + 1);
    }
    line.require_that(!has_movie_[id], "an earlier line has the same movie");
    has_movie_[id] = true;
    catalogue.titles[id] = without_year(title);
    genres_[id] = std::move(genres);
  }
  void end_movies(std::size_t genre_count) {
    data_.catalogue.genre_count = static_cast<std::int64_t>(genre_count);
    data_.catalogue.genres.assign(genres_.size() * genre_count, 0.0F);
    for (std::size_t id = 0; id < genres_.size(); ++id) {
      for (const std::size_t genre : genres_[id]) data_.catalogue.genres[id * genre_count + genre] = 1;
    }
  }
  void read_movies() {
    std::map<std::string, std::size_t, std::less<>> known;
    for_each(folder_, form_.movies, [&](const Line& line) {
      std::vector<std::size_t> genres;
      std::string_view rest = line.field(2);
      while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('|'), rest.size());
        genres.push_back(known.try_emplace(std::string(rest.substr(0, end)), known.size()).first->second);
        line.require_that(known.size() <= 64, "it has the 65th genre");
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
      add_movie(line, line.field(1), std::move(genres));
    });
    end_movies(std::max<std::size_t>(1, known.size()));
  }
  void read_old_movies() {
    for_each(folder_, form_.movies, [&](const Line& line) {
      std::vector<std::size_t> genres;
      for (std::size_t genre = 0; genre < old_genres; ++genre) {
        if (line.number<int>(first_old_genre + genre, 0, 1) == 1) genres.push_back(genre);
      }
      add_movie(line, line.field(1), std::move(genres));
    });
    end_movies(old_genres);
  }

  void read_ratings(std::uint64_t seed) {
    std::vector<std::vector<Rating>> of_users(has_user_.size());
    for_each(folder_, form_.ratings, [&](const Line& line) {
      const auto user = static_cast<std::size_t>(line.id(0));
      const auto movie = static_cast<std::size_t>(line.id(1));
      line.require_that(user < has_user_.size() && has_user_[user],
                        fmt::format("'{}' does not list its user", form_.users.file));
      line.require_that(movie < has_movie_.size() && has_movie_[movie],
                        fmt::format("'{}' does not list its movie", form_.movies.file));
      of_users[user].push_back(
          {static_cast<std::int32_t>(user), static_cast<std::int32_t>(movie), line.number<float>(2, 0.5F, 5)});
    });
    for (std::size_t user = 0; user < of_users.size(); ++user) {
      const auto count = std::ssize(of_users[user]);
      if (count == 0) continue;
      const Permutation order(count, seed, stream_counter(Stream::split, static_cast<std::int64_t>(user)));
      for (std::int64_t i = 0; i < count; ++i) {
        const Rating& rating = of_users[user][static_cast<std::size_t>(order.at(i))];
        (i < count / train_to_test ? data_.test : data_.train).push_back(rating);
      }
    }
  }

  fs::path folder_;
  Form form_;
  RatingData data_;
  std::vector<bool> has_user_;  // by id
  std::vector<bool> has_movie_;
  std::vector<std::vector<std::size_t>> genres_;  // by movie id
};

}  // namespace

RatingData read_movielens(const fs::path& folder, std::uint64_t seed) { return Reader(folder).read(seed); }

}  // namespace lockstep
