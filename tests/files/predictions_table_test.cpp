#include "files/predictions_table.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/io/file.hpp"
#include "support/messages.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::predictions_table_test {

const std::vector<std::string> classes = {
    "cat", "dog, small", "the \"blue\" bird", "two\nlines", "tab\there", "cr\r\nlf", "Ärmel",  "",  "\"",
    ",",   " spaced  ",  "semi;colon'quote",  "=1+1",       "'=1",       "\ttab",    "a\\x0a", "\\"};
const std::vector<std::int32_t> labels = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
const std::vector<std::int32_t> predictions = {16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};

// Undoes what is done to names, as data/README.md has it.
const std::string reading_script =
    "import csv, json, re, sys\n"
    "def unescaped(found):\n"
    "    word = found[1]\n"
    "    return word if word == '\\\\' else chr(int(word[1:], 16))\n"
    "def name_of(cell):\n"
    "    return re.sub(r'\\\\(\\\\|x..|u....)', unescaped, cell.removeprefix(\"'\"))\n";

// The names that Python finds in the cells of `text`.
std::vector<std::vector<std::string>> rows_of(const std::string& text, const std::string& dialect) {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "table", text);
  const std::string script = reading_script +
                             "with open(sys.argv[1], newline='', encoding='utf-8') as file:\n"
                             "    rows = [[name_of(cell) for cell in row] for row in csv.reader(file, " +
                             dialect + ")]\nprint(json.dumps(rows))\n";
  const ProgramResult result = run_program({"python3", "-c", script, folder.path() / "table"});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  return nlohmann::json::parse(result.output).get<std::vector<std::vector<std::string>>>();
}

// A file named .csv had tabs, and a comma, a quote or a new line in a class's name broke its line.
TEST(PredictionsTableTest, csv_gives_back_every_name_to_pythons_csv_module) {
  const auto rows = rows_of(predictions_table(labels, predictions, classes, TableFormat::csv), "strict=True");
  ASSERT_EQ(rows.size(), labels.size() + 1);
  EXPECT_EQ(rows[0], (std::vector<std::string>{"sample", "label", "prediction", "label_name", "prediction_name"}));
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    const auto label = static_cast<std::size_t>(labels[sample]);
    const auto prediction = static_cast<std::size_t>(predictions[sample]);
    EXPECT_EQ(rows[sample + 1],
              (std::vector<std::string>{std::to_string(sample), std::to_string(label), std::to_string(prediction),
                                        classes[label], classes[prediction]}));
  }
}

TEST(PredictionsTableTest, csv_is_quoted_only_where_it_must_be_and_lines_end_in_lf) {
  const std::vector<std::int32_t> label = {0};
  const std::vector<std::int32_t> prediction = {2};
  EXPECT_EQ(predictions_table(label, prediction, classes, TableFormat::csv),
            "sample,label,prediction,label_name,prediction_name\n0,0,2,cat,\"the \"\"blue\"\" bird\"\n");
}

TEST(PredictionsTableTest, tsv_has_tabs_and_a_line_for_each_sample_whatever_the_names_hold) {
  const auto rows = rows_of(predictions_table(labels, predictions, classes, TableFormat::tsv),
                            "delimiter='\\t', quoting=csv.QUOTE_NONE");
  ASSERT_EQ(rows.size(), labels.size() + 1);
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    ASSERT_EQ(rows[sample + 1].size(), 5U);
    EXPECT_EQ(rows[sample + 1][3], classes[sample]);
  }
}

// --predictions with the name of the model, or of a shard, replaced it.
TEST(PredictionsTableTest, replaces_nothing_but_an_earlier_table) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "table.csv";
  require_place_for_table(file);
  for (const TableFormat format : {TableFormat::csv, TableFormat::tsv}) {
    write_file_atomically(file, predictions_table(labels, predictions, classes, format));
    require_place_for_table(file);
  }
  write_file_atomically(file, std::string_view(""));
  require_place_for_table(file);
  write_file_atomically(file, std::string_view("\x89HDF"));
  expect_error(Failure::usage, {"--predictions", file.string()}, [&] { require_place_for_table(file); });
  expect_error(Failure::usage, {"--predictions", folder.path().string()},
               [&] { require_place_for_table(folder.path()); });
  expect_error(Failure::usage, {"--predictions", "/proc/nowhere/table.csv"},
               [] { require_place_for_table("/proc/nowhere/table.csv"); });
}

TEST(PredictionsTableTest, names_of_pictures_come_back_whatever_they_hold) {
  const std::vector<PicturePrediction> pictures = {{"holiday, \"2\"\n.jpg", {{3, 0.75F}, {0, 0.125F}}, ""},
                                                   {"notes.txt", {}, "'notes.txt' is no picture"},
                                                   {"a.png", {{2, 1}}, ""}};
  const auto rows = rows_of(pictures_table(pictures, classes, TableFormat::csv), "strict=True");
  using Rows = std::vector<std::vector<std::string>>;
  EXPECT_EQ(rows, (Rows{{"file", "place", "prediction", "prediction_name", "probability"},
                        {pictures[0].file, "1", "3", classes[3], "0.750000"},
                        {pictures[0].file, "2", "0", classes[0], "0.125000"},
                        {"a.png", "1", "2", classes[2], "1.000000"}}));
  EXPECT_EQ(pictures_table(std::span(pictures).last(1), classes, TableFormat::tsv),
            "file\tplace\tprediction\tprediction_name\tprobability\na.png\t1\t2\tthe \"blue\" bird\t1.000000\n");
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "table.csv";
  write_file_atomically(file, pictures_table(pictures, classes, TableFormat::csv));
  require_place_for_table(file);
}

TEST(PredictionsTableTest, the_files_name_decides) {
  EXPECT_EQ(table_format_of("a/predictions.tsv"), TableFormat::tsv);
  EXPECT_EQ(table_format_of("a/predictions.csv"), TableFormat::csv);
  EXPECT_EQ(table_format_of("a.tsv/predictions"), TableFormat::csv);
}

// --predictions p.xlsx got a CSV file of that name.
TEST(PredictionsTableTest, a_name_of_another_kind_is_refused) {
  const TemporaryFolder folder;
  for (const char* name : {"p.xlsx", "p.json", "p.TSV"}) {
    const std::filesystem::path file = folder.path() / name;
    expect_error(Failure::usage, {file.string(), "--predictions", ".csv", ".tsv"},
                 [&] { require_place_for_table(file); });
  }
  for (const char* name : {"p", "p.csv", "a.b.tsv"}) require_place_for_table(folder.path() / name);
}

}  // namespace lockstep::predictions_table_test
