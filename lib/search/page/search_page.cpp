#include "search/page/search_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/io/file.hpp"
#include "base/text/counted.hpp"
#include "base/text/number.hpp"
#include "report/page/html.hpp"
#include "run/run_file.hpp"
#include "run/summary.hpp"
#include "search/journal/search_folder.hpp"
#include "search/page/importance.hpp"
#include "search/page/search_plots.hpp"
#include "search/search_text.hpp"

namespace lockstep {
namespace {

using Align = TableColumn::Align;

constexpr std::size_t most_rows = 1000;

std::string unit_name(const SearchRecord& search) { return choice_name(length_units, search.space.unit); }

std::string state_of(const SearchRecord& search, std::int64_t number, bool is_final) {
  const ReportedTrial& trial = search.trials.at(number);
  if (trial.last.code != 0) return fmt::format("failed ({}): {}", trial.last.code, trial.last.reason);
  if (number == search.best) return "best";
  if (trial.open_length) return "under way to " + length_text(*trial.open_length, search.space.unit);
  return resting_state(search.space, trial.last, is_final);
}

// The command of a trial as its training recorded it; empty if it is unknown.
std::string command_of(const SearchRecord& search, std::int64_t number) {
  const std::optional<Summary> summary = read_summary(SearchFolder(search.folder).trial(number));
  if (!summary || summary->command_line.empty()) return "";
  std::vector<std::string> words;
  if (search.space.ranks_per_trial > 1) words = {"mpirun", "-n", std::to_string(search.space.ranks_per_trial)};
  for (const std::string& word : summary->command_line) {
    if (word.starts_with("--tensorboard=")) continue;
    words.push_back(word.starts_with("--output=") ? "--output=OUTPUT" : word);
  }
  return shell_command(words);
}

std::string best_html(const SearchRecord& search, std::span<const RatedParameter> parameters) {
  if (!search.best) return html_section("Best trial", html_paragraph("No trial has a result."));
  const ReportedTrial& best = search.trials.at(*search.best);
  std::vector<std::vector<std::string>> rows = {
      {metric_name(search.space.metric), metric_text(search.space, *best.last.metric)},
      {"trial", std::to_string(*search.best)},
      {unit_name(search), std::to_string(best.results.back().length)},
      {"steps", std::to_string(best.last.steps)}};
  for (const RatedParameter& rated : parameters) {
    rows.push_back({"--" + rated.parameter->option, short_setting_text(best.last.settings, *rated.parameter)});
  }
  const std::vector<TableColumn> columns{{"", Align::left}, {"", Align::left}};
  const std::string command = command_of(search, *search.best);
  std::string html = html_table(columns, rows);
  if (command.empty()) {
    html += html_paragraph("Its command is unknown: the trial's folder has no summary.json.");
  } else {
    html += html_paragraph("This command trains the same model again, with --output as you like:");
    html += fmt::format("<pre>{}</pre>\n", escaped(command));
  }
  return html_section("Best trial", html);
}

std::string cost_html(const SearchRecord& search) {
  struct Rung {
    std::int64_t length = 0, results = 0, failures = 0, under_way = 0;
  };
  std::map<std::pair<std::size_t, std::size_t>, Rung> rungs;
  double trained = 0;
  for (const auto& [number, trial] : search.trials) {
    for (const RungResult& result : trial.results) {
      Rung& rung = rungs[{trial.last.bracket, result.rung}];
      rung.length = result.length;
      ++rung.results;
    }
    if (!trial.results.empty()) trained += static_cast<double>(trial.results.back().length);
    if (!trial.open_length) continue;
    Rung& rung = rungs[{trial.last.bracket, trial.results.size()}];
    rung.length = *trial.open_length;
    ++(trial.last.code != 0 ? rung.failures : rung.under_way);
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& [place, rung] : rungs) {
    rows.push_back({std::to_string(place.first + 1), std::to_string(place.second + 1), std::to_string(rung.length),
                    std::to_string(rung.results), std::to_string(rung.failures), std::to_string(rung.under_way)});
  }
  const std::vector<TableColumn> columns{{"bracket", Align::right},         {"rung", Align::right},
                                         {unit_name(search), Align::right}, {"results", Align::right},
                                         {"failed", Align::right},          {"under way", Align::right}};
  const double whole =
      static_cast<double>(search.trials.size()) * static_cast<double>(search.space.searcher.max_length);
  std::string saved;
  if (whole > 0) {
    saved = fmt::format(
        "The trials were trained for {} {} in total, up to their last results. Training each of them in full would "
        "take {}: {:.0f} % is saved.",
        number_text(trained), unit_name(search), number_text(whole), 100 * (1 - trained / whole));
  }
  return html_section("Cost", html_paragraph(saved) + html_table(columns, rows));
}

std::string curves_html(const SearchRecord& search) {
  std::string text = fmt::format("Dashed lines: ends of rungs, after {} {}. Points: tests.",
                                 fmt::join(search.lengths, ", "), unit_name(search));
  if (search.trials.size() > colored_trials) {
    text += fmt::format(" The best {} trials have a color.", colored_trials);
  }
  if (search.trials.size() > most_curves) text += fmt::format(" The best {} trials are shown.", most_curves);
  if (const std::optional<double> limit = loss_limit(search)) {
    text += fmt::format(" Losses above {:.3g} are outside the plot.", *limit);
  }
  return html_section("Curves", html_plots({metric_curves(search)}) + html_paragraph(text));
}

std::string settings_html(const SearchRecord& search, std::span<const RatedParameter> parameters) {
  if (parameters.empty()) return "";
  std::string text =
      "Each line is a trial, from its settings to its last result. The color is its rank, from blue for the best to "
      "orange for the worst. Results after different lengths are not fully comparable.";
  if (search.trials.size() > most_lines) text += fmt::format(" The best {} trials are shown.", most_lines);
  if (parameters.size() > most_axes)
    text += fmt::format(" {} of {} hyperparameters are shown.", most_axes, parameters.size());
  return html_section("Settings", parallel_coordinates_html(search, parameters) + html_paragraph(text));
}

// The results after one length, by trial. Failed trials count as the worst.
struct ComparedTrials {
  std::int64_t length = 0;
  std::vector<std::int64_t> trials;
  std::vector<double> results;  // larger is better
};

// At the length with most results, of equally many the longest.
ComparedTrials compared_trials(const SearchRecord& search) {
  std::map<std::int64_t, ComparedTrials> by_length;
  for (const auto& [number, trial] : search.trials) {
    const auto add = [&, trial_number = number](std::int64_t length, double result) {
      by_length[length].length = length;
      by_length[length].trials.push_back(trial_number);
      by_length[length].results.push_back(result);
    };
    for (const RungResult& result : trial.results) {
      add(result.length, search.space.smaller_is_better ? -result.metric : result.metric);
    }
    if (trial.last.code != 0 && trial.open_length) add(*trial.open_length, -std::numeric_limits<double>::infinity());
  }
  ComparedTrials most;
  for (auto& [length, compared] : by_length) {
    if (compared.trials.size() >= most.trials.size()) most = std::move(compared);
  }
  return most;
}

// The most important one first.
std::vector<RatedParameter> rate(const SearchRecord& search, const ComparedTrials& compared) {
  std::vector<RatedParameter> rated;
  for (const Hyperparameter* const parameter : varied_parameters(search.space)) {
    std::vector<std::string> texts;
    std::vector<double> numbers;
    for (const std::int64_t trial : compared.trials) {
      texts.push_back(setting_text(search.trials.at(trial).last.settings, parameter->option));
      numbers.push_back(parse_number<double>(texts.back(), {-1e300, 1e300}).value_or(0));
    }
    const bool is_number = parameter->kind != Hyperparameter::Kind::listed;
    rated.push_back({parameter, is_number ? importance_of_numbers(numbers, compared.results)
                                          : importance_of_categories(texts, compared.results)});
  }
  std::ranges::stable_sort(rated, std::ranges::greater(),
                           [](const RatedParameter& one) { return one.importance ? one.importance->share : -1; });
  return rated;
}

std::string effect_text(const Importance& importance) {
  if (importance.interval.low <= 0) return "may have none";
  if (importance.correlation == 0) return "differs by category";
  return importance.correlation > 0 ? "larger values are better" : "smaller values are better";
}

std::string rating_html(const SearchRecord& search, const ComparedTrials& compared,
                        std::span<const RatedParameter> parameters) {
  if (parameters.empty()) return "";
  const bool has_any = std::ranges::any_of(parameters, [](const auto& rated) { return rated.importance.has_value(); });
  const std::string basis = fmt::format("{} with a result after {}", counted(compared.trials.size(), "trial"),
                                        length_text(compared.length, search.space.unit));
  if (!has_any) {
    return html_section("Importance", html_paragraph(fmt::format(
                                          "There are too few trials, or no differences: {}. At least {} are needed.",
                                          basis, least_trials)));
  }
  std::vector<std::vector<std::string>> rows;
  for (const RatedParameter& rated : parameters) {
    rows.push_back({rated.parameter->option});
    if (!rated.importance) {
      rows.back().insert(rows.back().end(), {"", "", "too few trials, or no differences"});
      continue;
    }
    const Importance& found = *rated.importance;
    rows.back().insert(rows.back().end(),
                       {fmt::format("{:.2f}", found.share),
                        fmt::format("{:.2f} to {:.2f}", found.interval.low, found.interval.high), effect_text(found)});
  }
  const std::vector<TableColumn> columns{{"hyperparameter", Align::left},
                                         {"importance", Align::right},
                                         {"95 % interval", Align::right},
                                         {"effect", Align::left}};
  const std::string method = fmt::format(
      "The share of the differences between results that one hyperparameter explains, from 0 to 1, of {}. Results "
      "count by rank, failed trials as the worst. For numbers, it is the squared rank correlation (Spearman), for "
      "categories the share of variance between them, both adjusted for chance. Bars have the 95 % interval of {} "
      "bootstrap samples. Only what has an effect by itself and in one direction is seen, not interactions. The "
      "searcher's choice of trials can change it.",
      basis, bootstrap_samples);
  return html_section("Importance", importance_html(parameters) + html_table(columns, rows) + html_paragraph(method));
}

std::string trials_html(const SearchRecord& search, std::span<const RatedParameter> parameters) {
  std::vector<TableColumn> columns{{"trial", Align::right},
                                   {"bracket", Align::right},
                                   {"rung", Align::right},
                                   {unit_name(search), Align::right},
                                   {metric_name(search.space.metric), Align::right},
                                   {"state", Align::left},
                                   {"restarts", Align::right}};
  for (const RatedParameter& rated : parameters) columns.push_back({rated.parameter->option, Align::right});
  const bool is_final = are_final(search.space, records_of(search));
  std::vector<std::vector<std::string>> rows;
  for (const std::int64_t number : ranked_trials(search)) {
    if (rows.size() == most_rows) break;
    const ReportedTrial& trial = search.trials.at(number);
    const bool has_result = !trial.results.empty();
    rows.push_back({std::to_string(number), std::to_string(trial.last.bracket + 1),
                    has_result ? std::to_string(trial.last.rung + 1) : "",
                    has_result ? std::to_string(trial.results.back().length) : "",
                    has_result ? metric_text(search.space, *trial.last.metric) : "", state_of(search, number, is_final),
                    std::to_string(trial.last.restarts)});
    for (const RatedParameter& rated : parameters) {
      rows.back().push_back(short_setting_text(trial.last.settings, *rated.parameter));
    }
  }
  const std::string left =
      search.trials.size() > rows.size()
          ? html_paragraph(fmt::format("And {} more in search.jsonl.", search.trials.size() - rows.size()))
          : "";
  return html_section("Trials", html_table(columns, rows) + left);
}

}  // namespace

std::string search_page(const SearchRecord& search) {
  const std::string title = fmt::format("Search of {}", search.space.program);
  const ComparedTrials compared = compared_trials(search);
  const std::vector<RatedParameter> parameters = rate(search, compared);
  std::string subtitle =
      fmt::format("{}: {}, {} of {}", search.folder.string(), choice_name(searcher_kinds, search.space.searcher.kind),
                  search.trials.size(), counted(search.space.searcher.max_trials, "trial"));
  const std::string name = text_in(search.space.content, "name");
  if (!name.empty()) subtitle = name + ", " + subtitle;
  if (!are_over(records_of(search))) subtitle += ". The search has not ended.";
  return html_page(title, fmt::format("<h1>{}</h1>\n<p class=\"quiet\">{}</p>\n", escaped(title), escaped(subtitle)) +
                              html_beside(best_html(search, parameters), curves_html(search)) +
                              settings_html(search, parameters) + rating_html(search, compared, parameters) +
                              cost_html(search) + trials_html(search, parameters));
}

void write_search_page(const std::filesystem::path& folder) {
  write_file_atomically(folder / "search.html", search_page(read_search(folder)));
}

}  // namespace lockstep
