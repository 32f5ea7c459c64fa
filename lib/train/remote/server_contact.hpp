// The file in a training's output folder by which its trainers find the server, if they are programs of their own: its
// addresses, its port, and the token that authenticates both ends (base/net/handshake). Whoever can read it can be a
// trainer, so only its owner can. An earlier attempt that was killed leaves its file, which leads nowhere.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/net/node_addresses.hpp"

namespace lockstep {

struct ServerContact {
  NodeAddresses node;
  int port = 0;
  std::string token;
};

// In the folder of --output, while it exists.
class PublishedContact {
 public:
  // Throws as write_file_atomically().
  PublishedContact(const std::filesystem::path& output, ServerContact contact);
  // Writes the file again if it was removed or changed, unless that fails.
  void renew_if_changed();
  PublishedContact(const PublishedContact&) = delete;
  PublishedContact& operator=(const PublishedContact&) = delete;
  ~PublishedContact();

 private:
  void write();

  std::filesystem::path file_;
  ServerContact contact_;
  struct stat written_ {};  // of the file
};

struct FoundContact {
  std::optional<ServerContact> contact;
  std::string why_not;  // if there is none
};
FoundContact find_contact(const std::filesystem::path& output);

}  // namespace lockstep
