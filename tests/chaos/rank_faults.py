"""Ranks that are killed, stopped, slowed and asked to stop."""
import signal
import threading
import time

from ground import SECONDS_TO_NAME_A_DEATH, Fault, Skipped
from training import send


def hit(case, training, number):
    """Sends a signal to one rank, and returns which."""
    rank, process = case.some_rank(training)
    case.where = f"rank {rank} of {case.ground.ranks}" + (f", {case.where}" if case.where else "")
    send(process, number)
    return rank


def wants_several_ranks(case):
    if case.ground.ranks == 1:
        raise Skipped("one rank has nobody who could tell")


def kill(case):
    training = case.training()
    ranks = []
    seconds, code = case.disturb(training, lambda it: ranks.append(hit(case, it, signal.SIGKILL)))
    case.expect(code != 0, "it ended with 0")
    said = "nobody was left to tell"
    if case.ground.ranks > 1:
        case.expect(seconds < SECONDS_TO_NAME_A_DEATH, f"{seconds:.1f} s until it ended")
        said = case.expect_report(training, 1, f"rank {ranks[0]} on .* was killed")
    case.expect_to_go_on(training)
    return said


def kill_all(case):
    training = case.training()

    def cut_power(it):
        for process in it.ranks().values():
            send(process, signal.SIGKILL)

    case.disturb(training, cut_power)
    case.expect_to_go_on(training)
    return "it went on"


def stop_for_good(case):
    wants_several_ranks(case)
    training = case.training("--hang-timeout", 2)
    ranks = []
    _, _ = case.disturb(training, lambda it: ranks.append(hit(case, it, signal.SIGSTOP)))
    said = case.expect_report(training, 76, f"rank {ranks[0]} on .* has been stopped|"
                                            f"no heartbeat from rank {ranks[0]}")
    case.expect_to_go_on(training)
    return said


def stop_for_a_while(case):
    training = case.training("--hang-timeout", 60)

    def pause(it):
        rank, process = case.some_rank(it)
        case.where = f"rank {rank} of {case.ground.ranks}"
        send(process, signal.SIGSTOP)
        time.sleep(1.5)
        send(process, signal.SIGCONT)

    _, code = case.disturb(training, pause)
    case.expect(code == 0, f"it ended with {code}")
    case.expect_right_weights(training)
    return "it went on"


def slow_down(case):
    """One rank gets a fifth of its time from here on."""
    wants_several_ranks(case)
    training = case.training(report_every=5)
    ranks = []

    def hold_back(process):
        while send(process, signal.SIGSTOP):
            time.sleep(0.08)
            send(process, signal.SIGCONT)
            time.sleep(0.02)

    def slow(it):
        rank, process = case.some_rank(it)
        ranks.append(rank)
        case.where = f"rank {rank} of {case.ground.ranks}"
        threading.Thread(target=hold_back, args=[process], daemon=True).start()

    case.some_step = lambda: 5
    _, code = case.disturb(training, slow)
    case.expect(code == 0, f"it ended with {code}")
    case.expect_right_weights(training)
    return case.expect_words(training, f"rank {ranks[0]} on .* [0-9]+ % of a step")


def ask_to_stop(number):
    def ask(case):
        training = case.training()
        case.disturb(training, lambda it: hit(case, it, number))
        said = case.expect_report(training, 75, "stopped after step .* with a checkpoint")
        case.expect_to_go_on(training)
        return said

    return ask


def ask_where(case):
    training = case.training()
    _, code = case.disturb(training, lambda it: hit(case, it, signal.SIGUSR2))
    case.expect(code == 0, f"it ended with {code}")
    case.expect_right_weights(training)
    return case.expect_words(training, r"\[rank [^]]*\]  is .*, for [0-9.]+ s")


def start_twice(case):
    """Whether the first one lives shows in the beats of its lock, one in ten seconds: so it has no end here."""
    training = case.training(epochs=1_000_000)
    refusals = []

    def start_another(it):
        other = case.training("--checkpoints", it.output / "checkpoints", name="-other")
        other.run()
        refusals.append(case.expect_report(other, 2, "another --checkpoints"))
        hit(case, it, signal.SIGUSR1)

    case.disturb(training, start_another)
    case.expect_report(training, 75, "with a checkpoint")
    return refusals[0]


GOES_ON = "then it goes on"
FAULTS = [
    Fault("kill a rank", f"named within {SECONDS_TO_NAME_A_DEATH} s, {GOES_ON}", kill, quick=True),
    Fault("kill all ranks", "it goes on", kill_all),
    Fault("stop a rank for good", f"named, 76, {GOES_ON}", stop_for_good),
    Fault("stop a rank for a while", "goes on", stop_for_a_while),
    Fault("slow a rank", "goes on, and the rank is named", slow_down, quick=True),
    Fault("SIGUSR1 to a rank", f"75, {GOES_ON}", ask_to_stop(signal.SIGUSR1), quick=True),
    Fault("SIGTERM to a rank", f"75, {GOES_ON}", ask_to_stop(signal.SIGTERM)),
    Fault("SIGUSR2 to a rank", "says where it is and goes on", ask_where),
    Fault("a second training in its folder", "refused, 2; the first goes on", start_twice),
]
