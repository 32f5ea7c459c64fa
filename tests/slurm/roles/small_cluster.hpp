// A cluster of two servers and three workers on two nodes, for tests.
#pragma once

#include "slurm/roles/cluster.hpp"

namespace lockstep {

inline Cluster small_cluster() {
  Cluster cluster;
  cluster.job = {17, "night run", "ada", "long", "/home/ada/a b"};
  cluster.attempt = 2;
  Role server{.name = "ps", .instances = 2, .command = {"server"}};
  server.ports = {{"rpc", 2}};
  server.min_succeeded_instances = never;
  Role worker{.name = "worker", .instances = 3, .command = {"train_cifar", "--data", "a b"}, .world = "training"};
  worker.cpus = 4;
  worker.memory_mb = 8192;
  worker.gpus = 1;
  cluster.roles = {server, worker};
  cluster.instances = instances_of(cluster.roles);
  int port = 20000;
  for (ClusterInstance& one : cluster.instances) {
    const bool is_first = one.role == 0 || one.instance == 0;
    one.host = is_first ? "n1" : "n2";
    one.address = is_first ? "10.0.0.1" : "10.0.0.2";
    for (const auto& [label, count] : reserved_ports(cluster.roles, one.role, one.instance)) {
      for (std::int64_t number = 0; number < count; ++number) one.ports[label].push_back(++port);
    }
  }
  return cluster;
}

}  // namespace lockstep
