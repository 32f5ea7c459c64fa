#include "report/training_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/clock.hpp"
#include "network/network_text.hpp"
#include "report/network_drawing.hpp"
#include "report/page/html.hpp"
#include "train/run_summary.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;
using Align = TableColumn::Align;

constexpr std::size_t max_shown = 200;  // rows of a table, over all trainings

std::string percent(const std::optional<double>& share) { return share ? fmt::format("{:.2f} %", 100 * *share) : ""; }
std::string decimals(const std::optional<double>& number, int places) {
  return number ? fmt::format("{:.{}f}", *number, places) : "";
}

std::string describe_step(const RunRecord& run) {
  const std::string step = run.text("step");  // empty before the first report
  return step.empty() ? "" : fmt::format("{} of {}", step, run.text("steps"));
}

std::string describe_best(const RunRecord& run) {
  const std::string best = percent(run.number("best_accuracy"));
  if (best.empty()) return "";
  const std::string split = run.text("best_split");  // empty in records of earlier versions
  return fmt::format("{} ({}step {})", best, split.empty() ? "" : split + " split, ", run.text("best_step"));
}

std::string describe_top5(const RunRecord& run) { return run.tests.empty() ? "" : percent(run.tests.back().top5); }

// The rows with a value for at least one training.
std::string results_html(std::span<const RunRecord> runs) {
  struct Result {
    const char* name;
    std::string (*message)(const RunRecord&);
  };
  static constexpr std::array<Result, 21> results{{
      {"state", [](const RunRecord& run) { return run.state; }},
      {"test accuracy (top-1)", [](const RunRecord& run) { return percent(run.number("test_accuracy")); }},
      {"test accuracy (top-5)", describe_top5},
      {"test loss", [](const RunRecord& run) { return decimals(run.number("test_loss"), 4); }},
      {"test accuracy of the EMA", [](const RunRecord& run) { return percent(run.number("ema_test_accuracy")); }},
      {"test-time augmentation", [](const RunRecord& run) { return run.text("test_augment"); }},
      {"test accuracy without augmentation",
       [](const RunRecord& run) { return percent(run.number("plain_test_accuracy")); }},
      {"test accuracy of the EMA without augmentation",
       [](const RunRecord& run) { return percent(run.number("plain_ema_test_accuracy")); }},
      {"validation accuracy", [](const RunRecord& run) { return percent(run.number("validation_accuracy")); }},
      {"validation accuracy without augmentation",
       [](const RunRecord& run) { return percent(run.number("plain_validation_accuracy")); }},
      {"validation metrics", [](const RunRecord& run) { return run.text("validation_metrics"); }},
      {"best accuracy", describe_best},
      {"step", describe_step},
      {"epochs", [](const RunRecord& run) { return run.text("epochs"); }},
      {"global batch", [](const RunRecord& run) { return run.text("global_batch"); }},
      {"ranks", [](const RunRecord& run) { return run.text("ranks"); }},
      {"samples per second", [](const RunRecord& run) { return decimals(run.number("samples_per_second"), 0); }},
      {"training time",
       [](const RunRecord& run) {
         const std::optional<double> seconds = run.number("training_seconds");
         return seconds ? format_duration(*seconds) : "";
       }},
      {"parameters", [](const RunRecord& run) { return run.text("parameters"); }},
      {"attempts", [](const RunRecord& run) { return std::to_string(1 + run.summary.interruptions.size()); }},
      {"weights hash", [](const RunRecord& run) { return run.text("weights_hash"); }},
  }};
  std::vector<TableColumn> columns{{"", Align::left}};
  for (const RunRecord& run : runs) columns.push_back({run.name, Align::left});
  std::vector<std::vector<std::string>> rows;
  for (const Result& result : results) {
    std::vector<std::string> row{result.name};
    for (const RunRecord& run : runs) row.push_back(result.message(run));
    if (std::any_of(row.begin() + 1, row.end(), [](const std::string& message) { return !message.empty(); })) {
      rows.push_back(std::move(row));
    }
  }
  return html_table(columns, rows);
}

// "400, 480" if the training was planned for 400 steps and later got more.
std::string planned_steps(const RunRecord& run) {
  std::vector<std::int64_t> steps;
  for (const Interruption& attempt : run.summary.interruptions) {
    if (attempt.steps) steps.push_back(*attempt.steps);
  }
  if (run.summary.steps) steps.push_back(*run.summary.steps);
  steps.erase(std::ranges::unique(steps).begin(), steps.end());
  return fmt::format("{}", fmt::join(steps, ", "));
}

// All values, keyed by name: "--lr", "version of HDF5", "device".
std::map<std::string, std::string> values_of(const RunRecord& run) {
  std::map<std::string, std::string> values;
  for (const auto& [group, prefix] : std::array<std::pair<const char*, const char*>, 3>{
           {{"recipe", "--"}, {"run", "--"}, {"versions", "version of "}}}) {
    const Json fields = run.summary.fields.value(group, Json());
    if (!fields.is_object()) continue;
    for (const auto& [name, value] : fields.items()) {
      if (name != "options" || !value.is_object()) {
        values[prefix + name] = value_text(value);
        continue;
      }
      for (const auto& [option, text] : value.items()) values[prefix + option] = value_text(text);  // of an own loop
    }
  }
  for (const char* field : {"data", "data_hash", "ranks", "global_batch", "parts_per_rank", "virtual_ranks", "device",
                            "reducer", "hosts", "commit", "build"}) {
    const std::string text = run.text(field);
    if (!text.empty()) values[field] = text;
  }
  values["planned steps"] = planned_steps(run);
  return values;
}

std::string differences_html(std::span<const RunRecord> runs) {
  const std::vector<Difference> differences = differences_of(runs);
  if (differences.empty())
    return html_paragraph("No differences: options, planned steps, machine and versions are the same.");
  std::vector<TableColumn> columns{{"", Align::left}};
  for (const RunRecord& run : runs) columns.push_back({run.name, Align::left});
  std::vector<std::vector<std::string>> rows;
  for (const Difference& difference : differences) {
    rows.push_back({difference.name});
    rows.back().insert(rows.back().end(), difference.values.begin(), difference.values.end());
  }
  return html_table(columns, rows);
}

// Below a table that has `shown` of `all` rows.
std::string and_more(std::size_t all, std::size_t shown) {
  return all > shown ? html_paragraph(fmt::format("And {} more.", all - shown)) : "";
}

struct RankCount {
  const char* field;  // of summary.json: a list with a number for each rank
  const char* column;
};

// What each rank did in the trainings whose summaries have all of these fields.
std::string rank_counts_html(const char* title, std::span<const RunRecord> runs, std::span<const RankCount> counts) {
  std::vector<TableColumn> columns{{"training", Align::left}, {"rank", Align::right}};
  for (const RankCount& count : counts) columns.push_back({count.column, Align::right});
  std::vector<std::vector<std::string>> rows;
  std::size_t all = 0;
  for (const RunRecord& run : runs) {
    std::vector<Json> lists;
    for (const RankCount& count : counts) lists.push_back(run.summary.fields.value(count.field, Json()));
    const auto is_list = [&](const Json& list) {
      return list.is_array() && list.size() == lists.front().size() &&
             std::ranges::all_of(list, [](const Json& number) { return number.is_number_integer(); });
    };
    if (!std::ranges::all_of(lists, is_list)) continue;
    for (std::size_t rank = 0; rank < lists.front().size(); ++rank) {
      ++all;
      if (rows.size() == max_shown) continue;
      rows.push_back({run.name, std::to_string(rank)});
      for (const Json& list : lists) rows.back().push_back(value_text(list[rank]));
    }
  }
  if (rows.empty()) return "";
  return html_section(title, html_table(columns, rows) + and_more(all, rows.size()));
}

std::string asynchronous_html(std::span<const RunRecord> runs) {
  static constexpr std::array<RankCount, 2> counts{{{"pushes", "gradients"}, {"dropped_pushes", "too old, dropped"}}};
  return rank_counts_html("Asynchronous gradients of the last attempt", runs, counts);
}

std::string shared_work_html(std::span<const RunRecord> runs) {
  static constexpr std::array<RankCount, 1> counts{{{"updates_by_rank", "updates"}}};
  return rank_counts_html("Updates of the last attempt, shared by speed", runs, counts);
}

std::string trainers_html(std::span<const RunRecord> runs) {
  std::vector<std::vector<std::string>> rows;
  std::size_t all = 0;
  for (const RunRecord& run : runs) {
    for (const TrainerLine& trainer : run.trainers) {
      ++all;
      if (rows.size() == max_shown) continue;
      rows.push_back(
          {run.name, std::to_string(trainer.step), trainer.number, trainer.process, trainer.host, trainer.change});
    }
  }
  if (rows.empty()) return "";
  const std::vector<TableColumn> columns{{"training", Align::left}, {"step", Align::right}, {"trainer", Align::right},
                                         {"process", Align::right}, {"host", Align::left},  {"", Align::left}};
  return html_section("Trainers that joined and left", html_table(columns, rows) + and_more(all, rows.size()));
}

std::string earlier_attempts_html(std::span<const RunRecord> runs) {
  std::vector<std::vector<std::string>> rows;
  std::size_t all = 0;
  for (const RunRecord& run : runs) {
    for (const Interruption& pause : run.summary.interruptions) {
      ++all;
      if (rows.size() == max_shown) continue;
      rows.push_back({run.name, describe_end(pause), pause.ranks ? std::to_string(*pause.ranks) : "", pause.device,
                      std::to_string(pause.step), utc_text(pause.resumed)});
    }
  }
  if (rows.empty()) return "";
  const std::vector<TableColumn> columns{{"training", Align::left},           {"ended", Align::left},
                                         {"its ranks", Align::right},         {"its device", Align::left},
                                         {"resumed from step", Align::right}, {"at", Align::left}};
  return html_section("Earlier attempts", html_table(columns, rows) + and_more(all, rows.size()));
}

// Each network once, with the names of its trainings if there are several.
std::string networks_html(std::span<const RunRecord> runs) {
  struct DrawnNetwork {
    std::string text;
    std::string names;
    const NetworkGraph* graph;
  };
  std::vector<DrawnNetwork> networks;
  for (const RunRecord& run : runs) {
    if (!run.network) continue;
    const std::string text = network_text(*run.network);
    const auto found = std::ranges::find(networks, text, &DrawnNetwork::text);
    if (found == networks.end()) {
      networks.push_back({text, run.name, &*run.network});
    } else {
      found->names += ", " + run.name;
    }
  }
  std::string html;
  for (const DrawnNetwork& network : networks) {
    if (runs.size() > 1) html += fmt::format("<h3>{}</h3>\n", escaped(network.names));
    html += network_html(*network.graph);
  }
  return html.empty() ? "" : html_section(networks.size() == 1 ? "Network" : "Networks", html);
}

// A table of an object's fields.
std::string fields_html(const Json& object) {
  if (!object.is_object()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, value] : object.items()) rows.push_back({name, value_text(value)});
  const std::vector<TableColumn> columns{{"", Align::left}, {"", Align::left}};
  return html_table(columns, rows);
}

std::string made_html(const RunRecord& run) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) rows.push_back({name, text});
  };
  add("data", run.text("data"));
  add("data hash", run.text("data_hash"));
  add("device", run.text("device"));
  add("precision", run.text("precision"));
  add("exchange between ranks", run.text("reducer"));
  add("ranks", run.text("ranks"));
  add("ranks by node", run.text("hosts"));
  add("started", run.text("started"));
  add("ended", run.text("ended"));
  add("commit", run.text("commit"));
  add("build", run.text("build"));
  add("versions", run.text("versions"));
  const Json of_run = run.summary.fields.value("run", Json());
  add("note", run.summary.note);
  add("tags", fmt::format("{}", fmt::join(run.summary.tags, " ")));
  const std::vector<TableColumn> columns{{"", Align::left}, {"", Align::left}};
  return fmt::format(
      "<h3>{}</h3>\n{}<pre>{}</pre>\n{}{}", escaped(run.name), html_table(columns, rows),
      escaped(command_text(run.summary.command_line)),
      html_details("Options that affect the weights", fields_html(run.summary.fields.value("recipe", Json()))),
      html_details("Other options", fields_html(of_run)));
}

}  // namespace

std::vector<Difference> differences_of(std::span<const RunRecord> runs) {
  std::vector<std::map<std::string, std::string>> values;
  std::map<std::string, bool> names;
  for (const RunRecord& run : runs) {
    values.push_back(values_of(run));
    for (const auto& [name, text] : values.back()) names[name] = true;
  }
  for (const char* place : {"--output", "--checkpoints"}) names.erase(place);
  std::vector<Difference> differences;
  for (const auto& [name, known] : names) {
    Difference difference{name, {}};
    for (const auto& of_run : values) {
      const auto found = of_run.find(name);
      difference.values.push_back(found == of_run.end() ? "" : found->second);
    }
    const std::string& first = difference.values.front();
    if (std::ranges::any_of(difference.values, [&](const std::string& text) { return text != first; })) {
      differences.push_back(std::move(difference));
    }
  }
  return differences;
}

std::string title_of(std::span<const RunRecord> runs) {
  if (runs.size() > 1) return fmt::format("{} trainings", runs.size());
  const std::string data = runs[0].text("data");  // empty with a training loop of its own
  return fmt::format("Training of {}{}", runs[0].text("model"), data.empty() ? "" : " on " + data);
}

std::string training_html(std::span<const RunRecord> runs, std::string_view more) {
  std::string names;
  for (const RunRecord& run : runs) names += (names.empty() ? "" : ", ") + run.name;
  std::string html = fmt::format("<h1>{}</h1>\n<p class=\"quiet\">{}</p>\n", escaped(title_of(runs)), escaped(names));
  html += html_section("Results", results_html(runs));
  if (runs.size() > 1) html += html_section("Differences", differences_html(runs));
  const bool has_marks = runs.size() == 1 && !runs[0].summary.interruptions.empty();
  html += html_section("Curves", html_plots(plots_of(runs)) +
                                     (has_marks ? html_paragraph("Dashed lines: ends of earlier attempts.") : ""));
  html += asynchronous_html(runs);
  html += shared_work_html(runs);
  html += trainers_html(runs);
  html += more;
  html += networks_html(runs);
  html += earlier_attempts_html(runs);
  std::string made;
  for (const RunRecord& run : runs) made += made_html(run);
  return html + html_section("Details", made);
}

}  // namespace lockstep
