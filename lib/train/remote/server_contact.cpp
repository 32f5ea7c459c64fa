#include "train/remote/server_contact.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/net/link_seal.hpp"
#include "base/text/json_text.hpp"
#include "run/run_file.hpp"

namespace lockstep {
namespace {

constexpr const char* contact_file = "trainers.json";
constexpr std::size_t longest_file = 64U << 10U;
constexpr std::int64_t largest_port = 65535;

}  // namespace

PublishedContact::PublishedContact(const std::filesystem::path& output, ServerContact contact)
    : file_(output / contact_file), contact_(std::move(contact)) {
  write();
}

void PublishedContact::renew_if_changed() try {
  struct stat now {};
  const bool is_there = ::stat(file_.c_str(), &now) == 0;
  const bool is_same = is_there && now.st_dev == written_.st_dev && now.st_ino == written_.st_ino &&
                       now.st_size == written_.st_size && now.st_mtim.tv_sec == written_.st_mtim.tv_sec &&
                       now.st_mtim.tv_nsec == written_.st_mtim.tv_nsec;
  if (is_same) return;
  write();
  log::warning("'{}', by which trainers find this server, was {}, and is written again.", file_.string(),
               is_there ? "changed" : "removed");
} catch (const Error&) {
  // The folder is removed, or its disk is full. There may be room later.
}

void PublishedContact::write() {
  const std::string text = json_lines({{"format", 1},
                                       {"network", contact_.node.network},
                                       {"addresses", contact_.node.addresses},
                                       {"port", contact_.port},
                                       {"token", contact_.token}});
  UnpublishedFile file(file_, secret_mode);
  file.append(std::as_bytes(std::span(text)));
  file.publish([] {});
  ::stat(file_.c_str(), &written_);
}

PublishedContact::~PublishedContact() {
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
}

FoundContact find_contact(const std::filesystem::path& output) {
  std::error_code error;
  if (!std::filesystem::exists(output / contact_file, error)) {
    return {{}, error ? "the folder cannot be read" : fmt::format("the folder has no '{}'", contact_file)};
  }
  const FoundContact damaged{{}, fmt::format("'{}' is damaged, or of another version", contact_file)};
  const std::optional<std::string> text = read_run_file(output / contact_file, longest_file);
  if (!text) return {{}, fmt::format("'{}' cannot be read. Only the owner of the training can", contact_file)};
  const nlohmann::json json = try_parse_json(*text, 3);
  if (!json.is_object() || count_in(json, "format") != 1) return damaged;
  const std::int64_t port = count_in(json, "port").value_or(0);
  ServerContact contact{{text_in(json, "network"), texts_in(json, "addresses")}, 0, text_in(json, "token")};
  if (port < 1 || port > largest_port || !is_secret_text(contact.token)) return damaged;
  contact.port = static_cast<int>(port);
  return {contact, ""};
}

}  // namespace lockstep
