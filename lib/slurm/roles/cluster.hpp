// The layout of a job with several roles, as every instance receives it: which instance runs where, and its addresses.
//
// It is complete once all instances have joined (rendezvous.hpp), and is then written to cluster.json:
//
//   format       1
//   job          id, name, user, partition, folder (its working directory)
//   attempt      how many times Slurm has requeued the job
//   checkpoint   the newest one to resume from; null: none
//   master       address, port: of the first instance of the first role
//   nodes        host, address, slots (instances that run there), in the order of the instances
//   roles        as in roles.json
//   instances    role, instance, rank (its first one in its world; 0 without a world), host, address, ports (label:
//   list)
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
  std::size_t role = 0;  // index in the list of roles
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
    std::string folder;  // the working directory of the instances; absolute

    bool operator==(const Job&) const = default;
  };

  Job job;
  std::int64_t attempt = 0;
  std::string checkpoint;  // empty: none
  std::vector<Role> roles;
  std::vector<ClusterInstance> instances;  // role by role
};

// Ports that every instance has besides those of its role, one each, as on OpenPAI. The first instance of the first
// role also has a master port, for any rendezvous of the job's programs.
inline constexpr const char* ssh_label = "ssh";
inline constexpr const char* http_label = "http";
inline constexpr const char* master_label = "master";
// Label and count of all ports reserved for an instance.
std::map<std::string, std::int64_t> reserved_ports(const std::vector<Role>& roles, std::size_t role,
                                                   std::int64_t instance);

// All instances, role by role, without hosts and ports.
std::vector<ClusterInstance> instances_of(const std::vector<Role>& roles);
// Index of an instance, such as worker[3], in the list of all instances. Nullopt if there is no such role or instance.
std::optional<std::size_t> place_of(const std::vector<Role>& roles, const std::string& role, std::int64_t instance);
// Indices of all instances in the same world as the instance at `place`, in the order of their ranks. Only `place`
// itself if its role has no world.
std::vector<std::size_t> world_of(const std::vector<Role>& roles, std::size_t place);

// The text of cluster.json on one line. Replaces bytes that are not UTF-8.
std::string cluster_text(const Cluster& cluster);
// Writes the whole cluster, indented for people. Throws what write_file_atomically() throws.
void write_cluster(const std::filesystem::path& file, const Cluster& cluster);

// Parses the output of cluster_text(). The text is untrusted; `name` says where it comes from. Throws Error(bad_data).
Cluster parse_cluster(const std::string& text, const std::string& name);
Cluster read_cluster(const std::filesystem::path& file);

// Reads the host, address and ports of an instance that has `reserved` ports. Throws Error(bad_data) that states the
// error, but not its source.
void read_location(const nlohmann::json& object, const std::map<std::string, std::int64_t>& reserved,
                   ClusterInstance& one);

inline constexpr std::size_t max_cluster_bytes = std::size_t{64} << 20;

}  // namespace lockstep
