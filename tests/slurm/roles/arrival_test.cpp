#include "slurm/roles/arrival.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <set>
#include <thread>

#include "base/clock.hpp"
#include "base/net/link_seal.hpp"
#include "slurm/roles/arrival_lines.hpp"
#include "slurm/roles/small_cluster.hpp"
#include "support/message_of.hpp"
#include "support/mutation.hpp"
#include "support/network/door.hpp"

namespace lockstep {
namespace {

// Attends until `is_enough`, for ten seconds at most.
template <typename IsEnough>
bool attend_until(ArrivalDesk& desk, IsEnough is_enough) {
  for (int tries = 0; tries < 1000 && !is_enough(); ++tries) {
    desk.attend();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return is_enough();
}

template <typename Result>
bool is_ready(const std::future<Result>& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

std::future<Arrived> start_task(const ArrivalPoint& point, std::int64_t rank,
                                std::chrono::seconds patience = std::chrono::seconds(20)) {
  const ArrivingTask task{
      .rank = rank, .slurm_step = 40 + std::int64_t(point.step), .host = "n1", .interface = "", .patience = patience};
  return std::async(std::launch::async, [=] { return arrive(point, task); });
}

std::vector<Role> workers(std::int64_t instances, const std::string& world = "world") {
  return {{.name = "worker", .instances = instances, .command = {"x"}, .world = world}};
}

std::unique_ptr<LineSocket> come_to(const ArrivalPoint& point) {
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

TEST(ArrivalTest, all_tasks_learn_of_all_others_and_no_port_is_promised_twice) {
  const std::vector<Role> roles = small_cluster().roles;  // two servers by themselves, a world of three workers
  ArrivalDesk desk(roles, steps_of(roles));
  std::vector<std::future<Arrived>> tasks;
  tasks.push_back(start_task(desk.point_of(1), 0));
  for (const int rank : {2, 0, 1}) tasks.push_back(start_task(desk.point_of(2), rank));
  ASSERT_TRUE(attend_until(desk, [&] { return desk.has_arrived(1) && desk.has_arrived(2); }));
  EXPECT_FALSE(desk.all_have_arrived());
  EXPECT_EQ(desk.describe_missing(), "ps[0]");
  EXPECT_EQ(desk.slurm_step(2), 42);
  EXPECT_FALSE(desk.slurm_step(0));
  tasks.push_back(start_task(desk.point_of(0), 0));
  ASSERT_TRUE(attend_until(desk, [&] { return desk.all_have_arrived(); }));
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
    const Arrived arrived = tasks[task].get();
    EXPECT_EQ(arrived.place, places[task]);
    EXPECT_EQ(arrived.cluster.instances, cluster.instances);
  }
}

TEST(ArrivalTest, a_task_that_leaves_has_not_arrived) {
  const std::vector<Role> roles = workers(12, "");
  ArrivalDesk desk(roles, steps_of(roles));
  EXPECT_EQ(
      desk.describe_missing(),
      "worker[0], worker[1], worker[2], worker[3], worker[4], worker[5], worker[6], worker[7], worker[8], worker[9] "
      "and 2 others");
  const ArrivalPoint point = desk.point_of(0);
  {
    auto knocked = std::async(std::launch::async,
                              [&] { return knock({"127.0.0.1"}, point.port, point.token, std::chrono::seconds(10)); });
    attend_until(desk, [&] { return is_ready(knocked); });
    const std::optional<Greeted> task = knocked.get();
    ASSERT_TRUE(task);
    task->socket->send(greeting_text({0, 0, 7}));
    ClusterInstance here{.role = 0, .instance = 0, .host = "n1", .address = "10.0.0.1", .ports = {}};
    here.ports = {{"ssh", {1}}, {"http", {2}}, {"master", {3}}};
    task->socket->send(whereabouts_text(here));
    EXPECT_TRUE(attend_until(desk, [&] { return desk.has_arrived(0); }));
  }
  EXPECT_TRUE(attend_until(desk, [&] { return !desk.has_arrived(0); }));
}

TEST(ArrivalTest, a_run_roles_that_does_not_answer_is_told) {
  ArrivalPoint point;
  {
    const std::vector<Role> roles = workers(1);
    point = ArrivalDesk(roles, steps_of(roles)).point_of(0);
  }
  point.addresses = {"127.0.0.1"};
  EXPECT_EQ(message_of(Failure::out_of_step,
                       [&] { arrive(point, {.host = "n1", .interface = "", .patience = std::chrono::seconds(1)}); }),
            "this task cannot become an instance: the job's run_roles does not answer at port " +
                std::to_string(point.port) +
                " of 127.0.0.1 (run_roles waits for all of them). Its own words say more.");
}

TEST(ArrivalTest, a_run_roles_that_gives_up_is_told) {
  const std::vector<Role> roles = workers(2);
  std::future<Arrived> task;
  {
    ArrivalDesk desk(roles, steps_of(roles));
    task = start_task(desk.point_of(0), 0);
    ASSERT_TRUE(attend_until(desk, [&] { return desk.describe_missing() == "worker[1]"; }));
  }
  EXPECT_EQ(message_of(Failure::out_of_step, [&] { task.get(); }),
            "this task cannot become an instance: run_roles has given up (run_roles waits for all of them). Its own "
            "words say more.");
}

// Somebody between the two changes what is said.
TEST(ArrivalTest, a_changed_line_is_told) {
  LineListener listener;
  const ArrivalPoint point{draw_secret(), 0, listener.port(), {"127.0.0.1"}};
  std::future<Arrived> task = start_task(point, 0);
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
  EXPECT_EQ(message_of(Failure::out_of_step, [&] { task.get(); }),
            "this task cannot become an instance: what run_roles sent was changed on its way (run_roles waits for all "
            "of them). Its own words say more.");
}

// Whoever connected was told the addresses and ports of all instances and the path of the checkpoint, and the token
// went over the network.
TEST(ArrivalTest, a_stranger_is_told_nothing_and_the_job_begins) {
  const std::vector<Role> roles = workers(2);
  std::vector<std::future<Arrived>> tasks;
  ArrivalDesk desk(roles, steps_of(roles));
  ArrivalDesk desk_of_another_job(roles, steps_of(roles));
  ArrivalPoint point = desk.point_of(0);
  point.addresses = {"127.0.0.1"};
  ArrivalPoint of_another_job = point;
  of_another_job.token = desk_of_another_job.point_of(0).token;
  const auto own = draw_secret();
  std::vector<std::unique_ptr<LineSocket>> strangers;
  for (int i = 0; i < 5; ++i) strangers.push_back(come_to(point));
  strangers[1]->send(R"({"token":")" + point.token + R"(","step":0,"rank":0,"slurm_step":0})");
  strangers[2]->send(greeting_text({0, 0, 0}));
  strangers[3]->send(std::string(100'000, 'x'));
  strangers[4]->send(own + " " + LinkSeal(point.token, own, own, LinkSeal::Side::caller).seal("knock"));
  std::future<Arrived> other = start_task(of_another_job, 0, std::chrono::seconds(1));
  tasks.push_back(start_task(point, 0));
  ASSERT_TRUE(attend_until(desk, [&] { return is_ready(other) && desk.describe_missing() == "worker[1]"; }));
  EXPECT_EQ(message_of(Failure::out_of_step, [&] { other.get(); }),
            "this task cannot become an instance: the job's run_roles does not answer at port " +
                std::to_string(point.port) +
                " of 127.0.0.1 (run_roles waits for all of them). Its own words say more.");
  tasks.push_back(start_task(point, 1));
  strangers.push_back(come_to(point));
  ASSERT_TRUE(attend_until(desk, [&] { return desk.all_have_arrived(); }));
  Cluster cluster;
  cluster.checkpoint = "/scratch/step-7.h5";
  desk.fill_in(cluster);
  desk.begin(cluster);
  for (std::future<Arrived>& task : tasks) EXPECT_EQ(task.get().cluster.checkpoint, "/scratch/step-7.h5");
  for (const auto& stranger : strangers) {
    const std::vector<std::string> told = told_to(*stranger);
    EXPECT_LE(told.size(), 1U);
    for (const std::string& line : told) EXPECT_TRUE(is_secret_text(line)) << line;
    EXPECT_NE(stranger->state(), LineSocket::State::open);
  }
}

TEST(ArrivalTest, a_job_begins_in_a_crowd_of_strangers) {
  const std::vector<Role> roles = workers(4);
  std::vector<std::future<Arrived>> tasks;
  ArrivalDesk desk(roles, steps_of(roles));
  const ArrivalPoint point = desk.point_of(0);
  Strangers strangers(point.port, 2, {"newlines", "endless_line", "noise", "knock", "pose", "dawdle", "stay"});
  for (const int rank : {0, 1, 2, 3}) tasks.push_back(start_task(point, rank));
  ASSERT_TRUE(attend_until(desk, [&] { return desk.all_have_arrived(); }));
  Cluster cluster;
  desk.fill_in(cluster);
  desk.begin(cluster);
  for (std::future<Arrived>& task : tasks) EXPECT_EQ(task.get().cluster.instances, cluster.instances);
  EXPECT_GT(strangers.wait().connections, 100);
}

// What a connection did not take at once was never sent, and the instances waited for ever.
TEST(ArrivalTest, a_description_of_many_megabytes_arrives_whole) {
  std::vector<Role> roles;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    roles.push_back(
        {.name = name, .command = std::vector<std::string>(8, std::string(120'000, 'x')), .world = "world"});
  }
  std::vector<std::future<Arrived>> tasks;
  ArrivalDesk desk(roles, steps_of(roles));
  for (std::size_t rank = 0; rank < roles.size(); ++rank) tasks.push_back(start_task(desk.point_of(0), rank));
  ASSERT_TRUE(attend_until(desk, [&] { return desk.all_have_arrived(); }));
  Cluster cluster;
  desk.fill_in(cluster);
  desk.begin(cluster);
  ASSERT_TRUE(attend_until(desk, [&] { return std::ranges::all_of(tasks, is_ready<Arrived>); }));
  for (std::future<Arrived>& task : tasks) EXPECT_EQ(task.get().cluster.instances, cluster.instances);
}

TEST(ArrivalTest, the_interface_of_a_users_choice_has_to_have_an_address) {
  const std::vector<Role> roles = workers(1);
  ArrivalDesk desk(roles, steps_of(roles));
  const auto arrive_over = [point = desk.point_of(0)](const char* interface) {
    return std::async(std::launch::async, [=] { return arrive(point, {.host = "n1", .interface = interface}); });
  };
  auto task = arrive_over("ib7");
  attend_until(desk, [&] { return is_ready(task); });
  EXPECT_EQ(message_of(Failure::usage, [&] { task.get(); }),
            "the network interface 'ib7' has no IPv4 address here (LOCKSTEP_INTERFACE: instances would not find each "
            "other). Name another.");
  auto loopback = arrive_over("lo");
  ASSERT_TRUE(attend_until(desk, [&] { return desk.all_have_arrived(); }));
  Cluster cluster;
  desk.fill_in(cluster);
  desk.begin(cluster);
  EXPECT_EQ(loopback.get().cluster.instances.at(0).address, "127.0.0.1");
}

TEST(ArrivalTest, where_to_arrive_is_passed_on_as_text) {
  const ArrivalPoint point{draw_secret(), 7, 4711, {"10.0.0.1", "::1"}};
  const std::optional<ArrivalPoint> read = parse_arrival(arrival_text(point));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->token, point.token);
  EXPECT_EQ(read->step, 7U);
  EXPECT_EQ(read->port, 4711);
  EXPECT_EQ(read->addresses, point.addresses);
  for (const char* rest : {"", " 1 2", " x 4711 ::1", " 1 0 ::1", " 1 65536 ::1", " -1 4711 ::1"}) {
    EXPECT_FALSE(parse_arrival(point.token + rest)) << rest;
  }
  for (const char* text : {"", "a 1 4711 ::1", " 1 4711 ::1"}) EXPECT_FALSE(parse_arrival(text)) << text;
}

TEST(ArrivalTest, no_line_does_more_than_be_passed_over) {
  const std::map<std::string, std::int64_t> ports = {{"ssh", 1}, {"rpc", 2}};
  ClusterInstance one{.role = 0, .instance = 0, .host = "n1", .address = "10.0.0.1", .ports = {}};
  one.ports = {{"ssh", {1}}, {"rpc", {2, 3}}};
  const std::vector<std::string> whole = {greeting_text({1, 2, 3}), reservation_text({4, ports}),
                                          whereabouts_text(one)};
  EXPECT_TRUE(parse_greeting(whole[0]) && parse_reservation(whole[1]) && read_whereabouts(whole[2], ports, one));
  for (std::uint64_t round = 0; round < mutation_rounds(3000); ++round) {
    const std::string line = mutated(whole[round % 3], round);
    parse_greeting(line);
    parse_reservation(line);
    read_whereabouts(line, ports, one);
  }
}

}  // namespace
}  // namespace lockstep
