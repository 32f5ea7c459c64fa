#include "slurm/roles/rendezvous.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <set>
#include <thread>

#include "base/clock.hpp"
#include "base/net/link_seal.hpp"
#include "slurm/roles/rendezvous_messages.hpp"
#include "slurm/roles/small_cluster.hpp"
#include "support/messages.hpp"
#include "support/mutation.hpp"
#include "support/network/door.hpp"

namespace lockstep::rendezvous_test {

// Attends until `is_enough`, for ten seconds at most.
template <typename IsEnough>
bool attend_until(Rendezvous& desk, IsEnough is_enough) {
  for (int tries = 0; tries < 1000 && !is_enough(); ++tries) {
    desk.process_events();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return is_enough();
}

template <typename Result>
bool is_ready(const std::future<Result>& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

std::future<JoinedTask> start_task(const RendezvousAddress& point, std::int64_t rank,
                                   std::chrono::seconds patience = std::chrono::seconds(20)) {
  const JoiningTask task{
      .rank = rank, .slurm_step = 40 + std::int64_t(point.step), .host = "n1", .interface = "", .patience = patience};
  return std::async(std::launch::async, [=] { return join_rendezvous(point, task); });
}

std::vector<Role> workers(std::int64_t instances, const std::string& world = "world") {
  return {{.name = "worker", .instances = instances, .command = {"x"}, .world = world}};
}

std::unique_ptr<LineSocket> come_to(const RendezvousAddress& point) {
  auto socket = connect_to("127.0.0.1", point.port, std::chrono::seconds(5), 1 << 20);
  if (socket == nullptr) throw std::runtime_error("nobody listens");
  return socket;
}

// All that comes until the other end closes the connection, line by line.
std::vector<std::string> told_to(LineSocket& socket) {
  const Stopwatch watch;
  std::vector<std::string> all;
  while (socket.state() == LineSocket::State::open && watch.seconds() < 10) {
    for (std::string& line : socket.receive()) all.push_back(std::move(line));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return all;
}

TEST(RendezvousTest, all_tasks_learn_of_all_others_and_no_port_is_promised_twice) {
  const std::vector<Role> roles = small_cluster().roles;  // two servers by themselves, a world of three workers
  Rendezvous desk(roles, steps_of(roles));
  std::vector<std::future<JoinedTask>> tasks;
  tasks.push_back(start_task(desk.address_of_step(1), 0));
  for (const int rank : {2, 0, 1}) tasks.push_back(start_task(desk.address_of_step(2), rank));
  ASSERT_TRUE(attend_until(desk, [&] { return desk.has_joined(1) && desk.has_joined(2); }));
  EXPECT_FALSE(desk.all_have_joined());
  EXPECT_EQ(desk.describe_missing(), "ps[0]");
  EXPECT_EQ(desk.slurm_step(2), 42);
  EXPECT_FALSE(desk.slurm_step(0));
  tasks.push_back(start_task(desk.address_of_step(0), 0));
  ASSERT_TRUE(attend_until(desk, [&] { return desk.all_have_joined(); }));
  Cluster cluster = small_cluster();
  desk.fill_in(cluster);
  desk.begin(cluster);
  std::set<int> ports;
  std::size_t reserved = 0;
  for (const ClusterInstance& one : cluster.instances) {
    for (const auto& [label, numbers] : one.ports) {
      ports.insert(numbers.begin(), numbers.end());
      reserved += numbers.size();
    }
  }
  EXPECT_EQ(reserved, 15U);  // ssh and http of five, two of rpc of two servers, one of the master
  EXPECT_EQ(ports.size(), reserved);
  const std::vector<std::size_t> places = {1, 4, 2, 3, 0};
  for (std::size_t task = 0; task < tasks.size(); ++task) {
    const JoinedTask arrived = tasks[task].get();
    EXPECT_EQ(arrived.place, places[task]);
    EXPECT_EQ(arrived.cluster.instances, cluster.instances);
  }
}

// Two instances with two GPUs each, in a world of four ranks.
TEST(RendezvousTest, ranks_of_one_instance_have_its_place_and_its_ports) {
  std::vector<Role> roles = workers(2);
  roles[0].gpus = 2;
  Rendezvous desk(roles, steps_of(roles));
  std::vector<std::future<JoinedTask>> tasks;
  for (const int rank : {3, 0, 2}) tasks.push_back(start_task(desk.address_of_step(0), rank));
  ASSERT_TRUE(attend_until(desk, [&] { return desk.describe_missing() == "worker[0]"; }));
  EXPECT_FALSE(desk.has_joined(0));
  tasks.push_back(start_task(desk.address_of_step(0), 1));
  ASSERT_TRUE(attend_until(desk, [&] { return desk.all_have_joined(); }));
  Cluster cluster = small_cluster();
  desk.fill_in(cluster);
  desk.begin(cluster);
  ASSERT_EQ(cluster.instances.size(), 2U);
  EXPECT_EQ(cluster.instances[1].ports.size(), 2U);
  const std::vector<std::size_t> places = {1, 0, 1, 0};
  for (std::size_t task = 0; task < tasks.size(); ++task) {
    const JoinedTask arrived = tasks[task].get();
    EXPECT_EQ(arrived.place, places[task]);
    EXPECT_EQ(arrived.cluster.instances, cluster.instances);
  }
}

TEST(RendezvousTest, a_task_that_leaves_has_not_arrived) {
  const std::vector<Role> roles = workers(12, "");
  Rendezvous desk(roles, steps_of(roles));
  EXPECT_EQ(
      desk.describe_missing(),
      "worker[0], worker[1], worker[2], worker[3], worker[4], worker[5], worker[6], worker[7], worker[8], worker[9] "
      "and 2 others");
  const RendezvousAddress point = desk.address_of_step(0);
  {
    auto connected = std::async(std::launch::async, [&] {
      return connect_to_node({"127.0.0.1"}, point.port, point.token, std::chrono::seconds(10));
    });
    attend_until(desk, [&] { return is_ready(connected); });
    const std::optional<AuthenticatedPeer> task = connected.get();
    ASSERT_TRUE(task);
    task->socket->send(join_request_text({0, 0, 7}));
    ClusterInstance here{.role = 0, .instance = 0, .host = "n1", .address = "10.0.0.1", .ports = {}};
    here.ports = {{"ssh", {1}}, {"http", {2}}, {"master", {3}}};
    task->socket->send(location_text(here));
    EXPECT_TRUE(attend_until(desk, [&] { return desk.has_joined(0); }));
  }
  EXPECT_TRUE(attend_until(desk, [&] { return !desk.has_joined(0); }));
}

TEST(RendezvousTest, a_run_roles_that_does_not_answer_is_told) {
  RendezvousAddress point;
  {
    const std::vector<Role> roles = workers(1);
    point = Rendezvous(roles, steps_of(roles)).address_of_step(0);
  }
  point.addresses = {"127.0.0.1"};
  expect_error(Failure::out_of_step, {std::to_string(point.port)},
               [&] { join_rendezvous(point, {.host = "n1", .interface = "", .patience = std::chrono::seconds(1)}); });
}

TEST(RendezvousTest, a_run_roles_that_gives_up_is_told) {
  const std::vector<Role> roles = workers(2);
  std::future<JoinedTask> task;
  {
    Rendezvous desk(roles, steps_of(roles));
    task = start_task(desk.address_of_step(0), 0);
    ASSERT_TRUE(attend_until(desk, [&] { return desk.describe_missing() == "worker[1]"; }));
  }
  expect_error(Failure::out_of_step, {}, [&] { task.get(); });
}

// Somebody between the two changes what is said.
TEST(RendezvousTest, a_changed_line_is_told) {
  LineListener listener;
  const RendezvousAddress point{draw_secret(), 0, listener.port(), {"127.0.0.1"}};
  std::future<JoinedTask> task = start_task(point, 0);
  std::unique_ptr<LineSocket> socket;
  const auto next_line = [&] {
    std::vector<std::string> lines;
    for (int tries = 0; tries < 1000 && lines.empty(); ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      lines = socket->receive();
    }
    return lines.empty() ? "" : lines.front();
  };
  while (socket == nullptr) socket = listener.accept(1000);
  const std::string challenge = draw_secret();
  socket->send(challenge);
  LinkSeal seal(point.token, challenge, next_line().substr(0, secret_text_length), LinkSeal::Side::listener);
  socket->send(seal.seal("welcome"));
  next_line();
  std::string line = seal.seal(reservation_text({0, {{"ssh", 1}}}));
  line.back() = ' ';
  socket->send(line);
  expect_error(Failure::out_of_step, {}, [&] { task.get(); });
}

// Whoever connected was told the addresses and ports of all instances and the path of the checkpoint, and the token
// went over the network.
TEST(RendezvousTest, an_unauthenticated_peer_learns_nothing_and_the_job_begins) {
  const std::vector<Role> roles = workers(2);
  std::vector<std::future<JoinedTask>> tasks;
  Rendezvous desk(roles, steps_of(roles));
  Rendezvous desk_of_another_job(roles, steps_of(roles));
  RendezvousAddress point = desk.address_of_step(0);
  point.addresses = {"127.0.0.1"};
  RendezvousAddress of_another_job = point;
  of_another_job.token = desk_of_another_job.address_of_step(0).token;
  const auto own = draw_secret();
  std::vector<std::unique_ptr<LineSocket>> unauthenticated;
  for (int i = 0; i < 5; ++i) unauthenticated.push_back(come_to(point));
  unauthenticated[1]->send(R"({"token":")" + point.token + R"(","step":0,"rank":0,"slurm_step":0})");
  unauthenticated[2]->send(join_request_text({0, 0, 0}));
  unauthenticated[3]->send(std::string(100'000, 'x'));
  unauthenticated[4]->send(own + " " + LinkSeal(point.token, own, own, LinkSeal::Side::caller).seal("hello"));
  std::future<JoinedTask> other = start_task(of_another_job, 0, std::chrono::seconds(1));
  tasks.push_back(start_task(point, 0));
  ASSERT_TRUE(attend_until(desk, [&] { return is_ready(other) && desk.describe_missing() == "worker[1]"; }));
  expect_error(Failure::out_of_step, {std::to_string(point.port)}, [&] { other.get(); });
  tasks.push_back(start_task(point, 1));
  unauthenticated.push_back(come_to(point));
  ASSERT_TRUE(attend_until(desk, [&] { return desk.all_have_joined(); }));
  Cluster cluster;
  cluster.checkpoint = "/scratch/step-7.h5";
  desk.fill_in(cluster);
  desk.begin(cluster);
  for (std::future<JoinedTask>& task : tasks) EXPECT_EQ(task.get().cluster.checkpoint, "/scratch/step-7.h5");
  for (const auto& peer : unauthenticated) {
    const std::vector<std::string> told = told_to(*peer);
    EXPECT_LE(told.size(), 1U);
    for (const std::string& line : told) EXPECT_TRUE(is_secret_text(line)) << line;
    EXPECT_NE(peer->state(), LineSocket::State::open);
  }
}

TEST(RendezvousTest, a_job_begins_among_many_unauthenticated_peers) {
  const std::vector<Role> roles = workers(4);
  std::vector<std::future<JoinedTask>> tasks;
  Rendezvous desk(roles, steps_of(roles));
  const RendezvousAddress point = desk.address_of_step(0);
  UnauthenticatedPeers unauthenticated(point.port, 2,
                                       {"newlines", "endless_line", "noise", "hello", "pose", "dawdle", "stay"});
  for (const int rank : {0, 1, 2, 3}) tasks.push_back(start_task(point, rank));
  ASSERT_TRUE(attend_until(desk, [&] { return desk.all_have_joined(); }));
  Cluster cluster;
  desk.fill_in(cluster);
  desk.begin(cluster);
  for (std::future<JoinedTask>& task : tasks) EXPECT_EQ(task.get().cluster.instances, cluster.instances);
  EXPECT_GT(unauthenticated.wait().connections, 100);
}

// What a connection did not take at once was never sent, and the instances waited for ever.
TEST(RendezvousTest, a_description_of_many_megabytes_arrives_whole) {
  std::vector<Role> roles;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    roles.push_back(
        {.name = name, .command = std::vector<std::string>(8, std::string(120'000, 'x')), .world = "world"});
  }
  std::vector<std::future<JoinedTask>> tasks;
  Rendezvous desk(roles, steps_of(roles));
  for (std::size_t rank = 0; rank < roles.size(); ++rank) tasks.push_back(start_task(desk.address_of_step(0), rank));
  ASSERT_TRUE(attend_until(desk, [&] { return desk.all_have_joined(); }));
  Cluster cluster;
  desk.fill_in(cluster);
  desk.begin(cluster);
  ASSERT_TRUE(attend_until(desk, [&] { return std::ranges::all_of(tasks, is_ready<JoinedTask>); }));
  for (std::future<JoinedTask>& task : tasks) EXPECT_EQ(task.get().cluster.instances, cluster.instances);
}

TEST(RendezvousTest, the_interface_of_a_users_choice_has_to_have_an_address) {
  const std::vector<Role> roles = workers(1);
  Rendezvous desk(roles, steps_of(roles));
  const auto join_over = [point = desk.address_of_step(0)](const char* interface) {
    return std::async(std::launch::async,
                      [=] { return join_rendezvous(point, {.host = "n1", .interface = interface}); });
  };
  auto task = join_over("ib7");
  attend_until(desk, [&] { return is_ready(task); });
  expect_error(Failure::usage, {"ib7"}, [&] { task.get(); });
  auto loopback = join_over("lo");
  ASSERT_TRUE(attend_until(desk, [&] { return desk.all_have_joined(); }));
  Cluster cluster;
  desk.fill_in(cluster);
  desk.begin(cluster);
  EXPECT_EQ(loopback.get().cluster.instances.at(0).address, "127.0.0.1");
}

TEST(RendezvousTest, where_to_arrive_is_passed_on_as_text) {
  const RendezvousAddress point{draw_secret(), 7, 4711, {"10.0.0.1", "::1"}};
  const std::optional<RendezvousAddress> read = parse_rendezvous_address(rendezvous_address_text(point));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->token, point.token);
  EXPECT_EQ(read->step, 7U);
  EXPECT_EQ(read->port, 4711);
  EXPECT_EQ(read->addresses, point.addresses);
  for (const char* rest : {"", " 1 2", " x 4711 ::1", " 1 0 ::1", " 1 65536 ::1", " -1 4711 ::1"}) {
    EXPECT_FALSE(parse_rendezvous_address(point.token + rest)) << rest;
  }
  for (const char* text : {"", "a 1 4711 ::1", " 1 4711 ::1"}) EXPECT_FALSE(parse_rendezvous_address(text)) << text;
}

TEST(RendezvousTest, no_line_does_more_than_be_passed_over) {
  const std::map<std::string, std::int64_t> ports = {{"ssh", 1}, {"rpc", 2}};
  ClusterInstance one{.role = 0, .instance = 0, .host = "n1", .address = "10.0.0.1", .ports = {}};
  one.ports = {{"ssh", {1}}, {"rpc", {2, 3}}};
  const std::vector<std::string> whole = {join_request_text({1, 2, 3}), reservation_text({4, ports}),
                                          location_text(one)};
  EXPECT_TRUE(parse_join_request(whole[0]) && parse_reservation(whole[1]) && read_location(whole[2], ports, one));
  for (std::uint64_t round = 0; round < mutation_rounds(3000); ++round) {
    const std::string line = mutated(whole[round % 3], round);
    parse_join_request(line);
    parse_reservation(line);
    read_location(line, ports, one);
  }
}

}  // namespace lockstep::rendezvous_test
