#include "launch/help_request.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

namespace lockstep {
namespace {

constexpr std::string_view help_with_groups = "--help=";

std::optional<HelpRequest::Kind> kind_of(std::string_view word) {
  if (word == "--help-all") return HelpRequest::Kind::help_all;
  if (word == "--version") return HelpRequest::Kind::version;
  const bool is_short = word.starts_with("-h");  // also of -help
  return is_short || word == "--help" || word.starts_with(help_with_groups) ? std::optional(HelpRequest::Kind::help)
                                                                            : std::nullopt;
}

void add_groups(std::string_view text, std::vector<std::string>& groups) {
  for (const std::string& group : CLI::detail::split(std::string(text), ',')) {
    if (!group.empty()) groups.push_back(group);
  }
}

const CLI::App* command_called(const CLI::App& app, const std::string& word) {
  const std::vector<const CLI::App*> commands = app.get_subcommands({});
  const auto found = std::ranges::find(commands, word, [](const CLI::App* one) { return one->get_name(); });
  return found == commands.end() ? nullptr : *found;
}

}  // namespace

std::optional<HelpRequest> help_request(std::span<const std::string> words) {
  std::optional<HelpRequest> request;
  bool names_groups = false;
  for (const std::string& word : words) {
    if (word == "--") break;
    const std::optional<HelpRequest::Kind> kind = kind_of(word);
    if (kind) {
      if (!request) request.emplace(HelpRequest{*kind, {}});
      request->kind = std::max(request->kind, *kind);
    }
    if (word.starts_with(help_with_groups)) add_groups(word.substr(help_with_groups.size()), request->groups);
    if (word.starts_with('-')) {
      names_groups = kind == HelpRequest::Kind::help;
    } else if (names_groups) {
      add_groups(word, request->groups);
    }
  }
  return request;
}

std::string request_text(const HelpRequest& request) {
  if (request.kind == HelpRequest::Kind::version) return "--version";
  if (request.kind == HelpRequest::Kind::help_all) return "--help-all";
  return fmt::format("--help{}{}", request.groups.empty() ? "" : " ", fmt::join(request.groups, " "));
}

const CLI::App& command_in(const CLI::App& app, std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (const CLI::App* const command = command_called(app, word)) return *command;
  }
  return app;
}

}  // namespace lockstep
