// Somebody on the network who is of no job, and none of whose business it is: comes to a port of this machine, again
// and again, and does harm there. As the user nobody, if root starts it.
//
//   stranger_program PORT SECONDS WAY...
//   stranger_program pid:PROCESS SECONDS WAY...    waits for the port on which that process listens for other nodes
//
// One process for each WAY of those below. Prints how many times somebody was there who spoke first.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"

namespace lockstep {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

struct Shared {
  std::atomic<int> port = 0;
  std::atomic<int> heard = 0;
  std::atomic<int> connections = 0;
};

class Stranger {
 public:
  Stranger(Shared& shared, double seconds) : shared_(shared), seconds_(seconds) {}

  bool goes_on() const { return watch_.seconds() < seconds_; }
  std::unique_ptr<Descriptor> come() const {
    auto socket = std::make_unique<Descriptor>(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(shared_.port.load()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(*socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return nullptr;
    ++shared_.connections;
    return socket;
  }
  // What is said first, if anything within a moment.
  std::string hear(int socket) const {
    pollfd wait{socket, POLLIN, 0};
    if (::poll(&wait, 1, 200) <= 0) return "";
    std::array<char, 256> room{};
    const ssize_t got = ::recv(socket, room.data(), room.size(), MSG_DONTWAIT);
    if (got <= 0) return "";
    ++shared_.heard;
    return {room.data(), static_cast<std::size_t>(got)};
  }
  static bool say(int socket, const std::string& text) {
    return ::send(socket, text.data(), text.size(), MSG_NOSIGNAL) > 0;
  }

 private:
  Shared& shared_;
  double seconds_;
  Stopwatch watch_;
};

// Says `text` for as long as somebody takes it.
void flood(const Stranger& stranger, const std::string& text) {
  while (stranger.goes_on()) {
    const auto socket = stranger.come();
    if (socket == nullptr) {
      std::this_thread::sleep_for(1ms);
      continue;
    }
    stranger.hear(*socket);
    while (stranger.goes_on() && Stranger::say(*socket, text)) {
    }
  }
}

std::string noise() {
  std::string text(1 << 16, '\0');
  std::uint32_t state = 1;
  for (char& letter : text) letter = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

// What nobody could say who does not know the token, but as long and as well spelt.
void pose(const Stranger& stranger) {
  while (stranger.goes_on()) {
    const auto socket = stranger.come();
    if (socket != nullptr && !stranger.hear(*socket).empty()) {
      Stranger::say(*socket, fmt::format("{} {} knock\n", std::string(64, 'a'), std::string(64, 'b')));
      Stranger::say(*socket, "bye\nhello {\"host\":\"n9\",\"ranks\":[1],\"token\":\"\"}\nviews [[1]]\n");
      stranger.hear(*socket);
    }
    std::this_thread::sleep_for(1ms);
  }
}

// A byte now and then, on several connections.
void dawdle(const Stranger& stranger) {
  std::vector<std::unique_ptr<Descriptor>> sockets(20);
  while (stranger.goes_on()) {
    for (auto& socket : sockets) {
      if (socket == nullptr && (socket = stranger.come()) != nullptr) stranger.hear(*socket);
      if (socket != nullptr && !Stranger::say(*socket, "a")) socket = nullptr;
    }
    std::this_thread::sleep_for(20ms);
  }
}

void stay(const Stranger& stranger, std::size_t most) {
  std::vector<std::unique_ptr<Descriptor>> sockets;
  while (stranger.goes_on()) {
    auto socket = sockets.size() < most ? stranger.come() : nullptr;
    if (socket == nullptr) {
      std::this_thread::sleep_for(1ms);
      continue;
    }
    sockets.push_back(std::move(socket));
    if (sockets.size() % 100 == 0) stranger.hear(*sockets.back());
  }
}

const std::map<std::string, std::function<void(const Stranger&)>> ways = {
    {"newlines", [](const Stranger& stranger) { flood(stranger, std::string(1 << 18, '\n')); }},
    {"endless_line", [](const Stranger& stranger) { flood(stranger, std::string(1 << 18, 'x')); }},
    {"noise", [](const Stranger& stranger) { flood(stranger, noise()); }},
    {"knock", [](const Stranger& stranger) { flood(stranger, "\n"); }},
    {"pose", pose},
    {"dawdle", dawdle},
    {"stay", [](const Stranger& stranger) { stay(stranger, 2500); }},
};

// Ports on which somebody listens, by the inodes of their sockets.
std::map<std::string, int> listening(const std::string& table) {
  std::map<std::string, int> ports;
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);  // the names of the columns
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::vector<std::string> columns;
    for (std::string word; words >> word;) columns.push_back(word);
    constexpr std::size_t inode = 9;
    if (columns.size() <= inode || columns[3] != "0A") continue;
    ports[columns[inode]] = std::stoi(columns[1].substr(columns[1].rfind(':') + 1), nullptr, 16);
  }
  return ports;
}

// MPI's ports have a socket for each family, that for other nodes has one for both. 0: there is none.
int port_for_nodes(const fs::path& process) {
  const std::map<std::string, int> both = listening(process / "net/tcp6");
  std::set<int> of_one_family;
  for (const auto& [inode, port] : listening(process / "net/tcp")) of_one_family.insert(port);
  std::error_code none;
  for (const fs::directory_entry& file : fs::directory_iterator(process / "fd", none)) {
    const std::string target = fs::read_symlink(file.path(), none).string();
    if (!target.starts_with("socket:[")) continue;
    const auto place = both.find(target.substr(8, target.size() - 9));
    if (place != both.end() && !of_one_family.contains(place->second)) return place->second;
  }
  return 0;
}

void become_nobody() {
  constexpr uid_t nobody = 65534;
  if (::geteuid() == 0 && (::setgid(nobody) != 0 || ::setuid(nobody) != 0)) ::_exit(1);
}

int run(const std::string& where, double seconds, const std::vector<std::string>& chosen) {
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& shared = *new (memory) Shared;
  if (!where.starts_with("pid:")) shared.port = std::stoi(where);
  for (const std::string& way : chosen) {
    if (::fork() != 0) continue;
    become_nobody();
    const Stranger stranger(shared, seconds);
    while (shared.port == 0 && stranger.goes_on()) std::this_thread::sleep_for(50us);
    ways.at(way)(stranger);
    ::_exit(0);
  }
  const Stopwatch watch;
  while (shared.port == 0 && watch.seconds() < seconds) shared.port = port_for_nodes("/proc/" + where.substr(4));
  while (::wait(nullptr) > 0) {
  }
  fmt::print("port {}, {} connections, {} answers\n", shared.port.load(), shared.connections.load(),
             shared.heard.load());
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run(argv[1], std::atof(argv[2]), std::vector<std::string>(argv + 3, argv + argc));
}
