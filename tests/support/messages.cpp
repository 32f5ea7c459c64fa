#include "support/messages.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <utility>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// "recipe" of ".../tests/recipe/recipe_test.cpp".
std::string room_of(const std::source_location& where) {
  const std::string path = where.file_name();
  constexpr std::string_view tests = "tests/";
  const std::size_t start = path.rfind(tests) + tests.size();
  return path.substr(start, path.find('/', start) - start);
}

std::string approved_form(std::string_view message) {
  static const std::pair<std::regex, const char*> replacements[] = {
      {std::regex(fs::temp_directory_path().string() + R"(/[\w.-]+)"), "{folder}"},
      {std::regex("cpu: [^,]+, SSE2"), "cpu: {processor}, SSE2"},
      {std::regex(R"(/proc/self/fd/\d+)"), "{descriptor}"},
      {std::regex(R"(\bport \d{4,5}\b)"), "port {port}"},
      {std::regex(R"(Known: [\w.+-]+(, [\w.+-]+)+)"), "Known: {names}"},
      {std::regex("\n"), R"(\n)"},
  };
  std::string form(message);
  for (const auto& [pattern, replacement] : replacements) form = std::regex_replace(form, pattern, replacement);
  return form;
}

// "RecipeTest.a_batch_is_refused 2": the second message of that test.
std::string place_of_message() {
  static std::map<std::string, int> counts;
  const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = test == nullptr ? "" : fmt::format("{}.{}", test->test_suite_name(), test->name());
  if (name.ends_with("/cuda")) name += "_on_host";  // a GPU says the same, and sentences are approved without one
  return fmt::format("{} {}", name, ++counts[name]);
}

// The sentences of a room by place; ranks of a test may have different ones.
const std::multimap<std::string, std::string>& approved_in(const std::string& room) {
  static std::map<std::string, std::multimap<std::string, std::string>> rooms;
  const auto known = rooms.find(room);
  if (known != rooms.end()) return known->second;
  std::multimap<std::string, std::string>& sentences = rooms[room];
  const char* const folder = std::getenv("LOCKSTEP_TESTS_FOLDER");  // where tests/gpu.sh has them
  std::ifstream file(fs::path(folder != nullptr ? folder : LOCKSTEP_TESTS_FOLDER) / room / "messages.txt");
  std::string test;
  for (std::string line; std::getline(file, line);) {
    const std::size_t number = line.find_first_not_of(' ');
    const std::size_t colon = line.find(": ");
    if (line.starts_with("  ") && colon != std::string::npos) {
      sentences.emplace(test + ' ' + line.substr(number, colon - number), line.substr(colon + 2));
    } else {
      test = line;
    }
  }
  return sentences;
}

}  // namespace

void expect_message(std::string_view message, Subjects subjects, const std::source_location& where) {
  const testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()),
                                   fmt::format("message: {}", message));
  for (const std::string_view subject : subjects) {
    EXPECT_NE(message.find(subject), std::string_view::npos) << "it does not name '" << subject << "'";
  }
  const std::string room = room_of(where);
  const std::string place = place_of_message();
  const std::string form = approved_form(message);
  if (const char* const folder = std::getenv("LOCKSTEP_APPROVE_MESSAGES")) {
    std::ofstream(fs::path(folder) / room, std::ios::app) << fmt::format("{}\t{}\n", place, form);
    return;
  }
  const auto [first, last] = approved_in(room).equal_range(place);
  EXPECT_TRUE(std::any_of(first, last, [&](const auto& approved) { return approved.second == form; }))
      << "not in tests/" << room << "/messages.txt at '" << place << "'"
      << (first == last ? "" : ", where it is:\n  " + first->second)
      << "\nIf the message is right: tests/approve_messages.py " << room;
}

void expect_failure_class(Failure expected, const Error* error, const std::source_location& where) {
  const testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "");
  if (error == nullptr) {
    ADD_FAILURE() << "no error";
    return;
  }
  EXPECT_EQ(static_cast<int>(error->failure()), static_cast<int>(expected)) << error->what();
}

}  // namespace lockstep
