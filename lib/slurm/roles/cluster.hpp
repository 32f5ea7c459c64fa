// A job of several roles as each of its instances is told of it: who runs where, and how to reach it.
//
// It is known when all instances have arrived (rendezvous.hpp), and then written into cluster.json:
//
//   format       1
//   job          id, name, user, partition
//   attempt      how many times Slurm has put the job back into its queue
//   checkpoint   the newest one to go on from; null: none
//   master       address, port: of the first instance of the first role
//   nodes        host, address, slots (instances that run there), in the order of the instances
//   roles        as in roles.json
//   instances    role, instance, rank (in its world; 0 where it is by itself), host, address, ports (label: list)
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "slurm/roles/role.hpp"

namespace lockstep {

struct ClusterInstance {
  std::size_t role = 0;  // its place in the list of roles
  std::int64_t instance = 0;
  std::string host;
  std::string address;  // numeric
  std::map<std::string, std::vector<int>> ports;

  bool operator==(const ClusterInstance&) const = default;
};

struct Cluster {
  struct Job {
    std::int64_t id = 0;
    std::string name;
    std::string user;
    std::string partition;

    bool operator==(const Job&) const = default;
  };

  Job job;
  std::int64_t attempt = 0;
  std::string checkpoint;  // empty: none
  std::vector<Role> roles;
  std::vector<ClusterInstance> instances;  // role by role
};

// Ports of every instance beside those of its role, one each, as in the platform; and one of the first instance of the
// first role, for whoever wants to meet there.
inline constexpr const char* ssh_label = "ssh";
inline constexpr const char* http_label = "http";
inline constexpr const char* master_label = "master";
// Label and count of all ports that are reserved for an instance.
std::map<std::string, std::int64_t> reserved_ports(const std::vector<Role>& roles, std::size_t role,
                                                   std::int64_t instance);

// All instances, role by role, without hosts and ports.
std::vector<ClusterInstance> instances_of(const std::vector<Role>& roles);
// The place of worker[3] in such a list; nothing where there is no such role or instance.
std::optional<std::size_t> place_of(const std::vector<Role>& roles, const std::string& role, std::int64_t instance);
// The places of the instances that are ranks of one world with that at `place`, in the order of their ranks: of itself
// alone if its role has no world.
std::vector<std::size_t> world_of(const std::vector<Role>& roles, std::size_t place);

// The text of cluster.json on one line. Bytes that are not UTF-8 are replaced.
std::string cluster_text(const Cluster& cluster);
// Writes it, whole, for people: on many lines. Throws as write_file_atomically().
void write_cluster(const std::filesystem::path& file, const Cluster& cluster);

// What cluster_text() gave; the text counts as untrusted, and `name` says where it is from. Throws Error(bad_data).
Cluster parse_cluster(const std::string& text, const std::string& name);
Cluster read_cluster(const std::filesystem::path& file);

// Host, address and ports of an instance, which has `reserved` ones. Throws Error(bad_data) that says what is wrong,
// not where.
void read_location(const nlohmann::json& object, const std::map<std::string, std::int64_t>& reserved,
                   ClusterInstance& one);

inline constexpr std::size_t most_cluster_bytes = std::size_t{64} << 20;

}  // namespace lockstep
