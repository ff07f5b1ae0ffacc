"""Injects the faults of a plan into the fleet."""

import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TypeVar

from tests.chaos.fleet import Fleet, Pipeline, kill, kill_one
from tests.chaos.load import PRODUCERS
from tests.chaos.network import Link
from tests.chaos.plan import Fault
from tests.processes import descendants, gone, program_of
from tests.system.pipeline_process import send

AT_ONCE = 4
EARLY = 0.3
"""Probability of a pipeline fault before the pipelines have made progress since the last one."""
CLOCK_ERRORS_MS = (-200_000, -30_000, -5_000, 0, 3_000, 40_000)
T = TypeVar("T")


class Faults:
    """Executes a plan: up to four concurrent faults, one per target."""

    def __init__(self, fleet: Fleet, log: Callable[[str], None]) -> None:
        self._fleet = fleet
        self._log = log
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._last_batch: str | None = None
        #: Faults that had an effect, by kind.
        self.happened: Counter[str] = Counter()
        #: Skipped faults, by reason.
        self.skipped: Counter[str] = Counter()

    def run(self, plan: Sequence[Fault], check: Callable[[], None]) -> None:
        """Inject all faults; `check` raises if the run cannot continue."""
        began = time.monotonic()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            started = []
            for fault in plan:
                while time.monotonic() < began + fault.at:
                    check()
                    time.sleep(0.1)
                started.append(pool.submit(self._happen, fault))
        for each in started:
            each.result()
        self._fleet.heal()

    def _happen(self, fault: Fault) -> None:
        act = getattr(self, "_" + fault.kind.lower().replace(" ", "_").replace("-", "_").replace("'", ""))
        self._log(str(fault))
        act(fault)

    def _alone(self, victim: str) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(victim, threading.Lock())

    def _count(self, fault: Fault, *, hit: bool, detail: str = "") -> None:
        """Count a fault if it hit something, such as a running process or an open connection."""
        if not hit:
            self._skip(f"{fault.kind}: there was nothing to hit")
            return
        with self._lock:
            self.happened[f"{fault.kind}{detail}"] += 1

    def _skip(self, reason: str) -> None:
        with self._lock:
            self.skipped[reason] += 1

    # Brokers and clients

    def _kill_broker(self, fault: Fault) -> None:
        self._count(fault, hit=kill(_chosen(self._fleet.brokers, fault), fault.seconds))

    def _stop_broker(self, fault: Fault) -> None:
        self._count(fault, hit=kill(_chosen(self._fleet.brokers, fault), fault.seconds, signal.SIGTERM))

    def _freeze_broker(self, fault: Fault) -> None:
        broker = _chosen(self._fleet.brokers, fault)
        with self._alone(broker.name):
            self._count(fault, hit=_freeze(broker.pids(), fault.seconds))

    def _kill_consumer(self, fault: Fault) -> None:
        self._count(fault, hit=kill(_chosen(self._fleet.consumers, fault), fault.seconds))

    def _kill_producer(self, fault: Fault) -> None:
        self._count(fault, hit=kill(_chosen(self._fleet.producers, fault), fault.seconds))

    def _step_producers_clock(self, fault: Fault) -> None:
        chance = random.Random(fault.choice)
        file = self._fleet.folder / f"clock-{chance.choice(PRODUCERS)}"
        file.write_text(str(chance.choice(CLOCK_ERRORS_MS)))
        self._count(fault, hit=True)

    # Pipelines

    def _leader(self) -> Pipeline:
        return self._fleet.leader() or self._fleet.pipelines[0]

    @contextmanager
    def _pipelines(self, fault: Fault) -> Iterator[bool]:
        """Lock the pipelines; yield whether to inject, usually only if a batch followed their last fault."""
        with self._alone("pipelines"):
            last = self._fleet.last_batch()
            is_due = last is not None and last != self._last_batch
            if is_due or fault.choice < EARLY:
                yield True
                self._last_batch = last
            else:
                self._skip(f"{fault.kind}: no batch was pushed since the last pipeline fault")
                yield False

    def _kill_pipeline(self, fault: Fault) -> None:
        with self._pipelines(fault) as due:
            if due:
                self._count(fault, hit=kill(self._leader(), fault.seconds))

    def _kill_driver(self, fault: Fault) -> None:
        """Kill only the driver: the JVM and the workers must notice and exit."""
        with self._pipelines(fault) as due:
            if not due:
                return
            leader = self._leader()
            pids = leader.pids()
            self._count(fault, hit=bool(pids))
            if not pids:
                return
            leader.due_at = time.monotonic() + 60
            kill_one(leader.own.process.pid)
            leader.own.process.wait()
            deadline = time.monotonic() + 30
            while (left := [pid for pid in pids if not gone(pid)]) and time.monotonic() < deadline:
                time.sleep(0.1)
            if left:
                self._skip("processes of a killed driver were still running after 30 s")
                send(signal.SIGKILL, left)
            leader.due_at = time.monotonic() + fault.seconds

    def _kill_jvm(self, fault: Fault) -> None:
        with self._pipelines(fault) as due:
            if due:
                leader = self._leader()
                leader.due_at = time.monotonic() + fault.seconds
                self._count(fault, hit=any(map(kill_one, _java(leader))))

    def _kill_python_workers(self, fault: Fault) -> None:
        with self._pipelines(fault) as due:
            if due:
                below = [pid for java in _java(self._leader()) for pid in descendants(java)]
                hits = [kill_one(pid) for pid in below if "python" in program_of(pid)]
                self._count(fault, hit=any(hits))

    def _kill_standby(self, fault: Fault) -> None:
        with self._alone("pipelines"):
            leader = self._leader()
            (standby,) = [each for each in self._fleet.pipelines if each is not leader]
            self._count(fault, hit=kill(standby, fault.seconds))

    def _freeze_leader(self, fault: Fault) -> None:
        """Freeze the leader, so that a standby takes over. After thawing it must not push anything."""
        with self._pipelines(fault) as due:
            if due:
                self._count(fault, hit=_freeze(self._leader().pids(), fault.seconds))

    def _stop_leader(self, fault: Fault) -> None:
        with self._pipelines(fault) as due:
            if due:
                leader = self._leader()
                leader.due_at = time.monotonic() + fault.seconds
                running = [leader.own.process.pid] if leader.is_running() else []
                self._count(fault, hit=any(kill_one(pid, signal.SIGTERM) for pid in running))

    def _lose_checkpoint(self, fault: Fault) -> None:
        with self._pipelines(fault) as due:
            if not due:
                return
            checkpoint = self._fleet.folder / "checkpoint"
            for pipeline in self._fleet.pipelines:
                # No pipeline may start before the checkpoint is deleted.
                pipeline.due_at = time.monotonic() + 60
            for pipeline in self._fleet.pipelines:
                send(signal.SIGKILL, pids := pipeline.pids())
                while not all(map(gone, pids)):
                    pipeline.is_running()
                    time.sleep(0.02)
            self._count(fault, hit=checkpoint.exists())
            shutil.rmtree(checkpoint, ignore_errors=True)
            for pipeline in self._fleet.pipelines:
                pipeline.due_at = time.monotonic() + fault.seconds

    # PostgreSQL

    def _kill_postgresql(self, fault: Fault) -> None:
        with self._alone("PostgreSQL"):
            self._count(fault, hit=kill(self._fleet.postgres, fault.seconds))

    def _kill_postgresql_backend(self, fault: Fault) -> None:
        """Kill one backend: PostgreSQL terminates all of them and recovers."""
        with self._alone("PostgreSQL"):
            backends = [pid for each in self._fleet.postgres.pids() for pid in sorted(descendants(each))]
            self._count(fault, hit=bool(backends) and kill_one(_chosen(backends, fault)))

    def _restart_postgresql(self, fault: Fault) -> None:
        with self._alone("PostgreSQL"):
            self._count(fault, hit=kill(self._fleet.postgres, fault.seconds, signal.SIGINT))

    def _fill_disk(self, fault: Fault) -> None:
        if not self._fleet.disk.is_small:
            self._skip("PostgreSQL's disk was not filled: mounting a tmpfs is not permitted")
            return
        with self._alone("PostgreSQL"):
            self._fleet.disk.fill()
            time.sleep(fault.seconds)
            self._fleet.disk.empty()
        self._count(fault, hit=True)

    # The network

    @contextmanager
    def _link(self, fault: Fault) -> Iterator[Link]:
        """Lock a link; count the fault if it affects a connection."""
        link = _chosen(self._fleet.links, fault)
        with self._alone(link.name):
            before = link.affected
            yield link
            self._count(fault, hit=link.affected > before, detail=f": {_sort(link.name)}")

    def _cut_link(self, fault: Fault) -> None:
        with self._link(fault) as link:
            link.is_refusing = fault.seconds > 1
            self._fleet.network.do(link.cut)
            time.sleep(fault.seconds)
            link.is_refusing = False

    def _delay_link(self, fault: Fault) -> None:
        with self._link(fault) as link:
            link.delay = random.Random(fault.choice).choice((0.01, 0.05, 0.3))
            time.sleep(fault.seconds)
            link.delay = 0.0

    def _half_close_link(self, fault: Fault) -> None:
        towards_server = random.Random(fault.choice).random() < 0.5
        with self._link(fault) as link:
            self._fleet.network.do(lambda: link.half_close(towards_server=towards_server))
            time.sleep(fault.seconds)
            self._fleet.network.do(link.cut)

    def _stall_link(self, fault: Fault) -> None:
        """Stall the link for a while; then either resume it or break its connections."""
        with self._link(fault) as link:
            self._fleet.network.do(link.stall)
            time.sleep(fault.seconds)
            if random.Random(fault.choice).random() < 0.5:
                self._fleet.network.do(link.cut)
            self._fleet.network.do(link.heal)


def _chosen(some: Sequence[T], fault: Fault) -> T:
    return some[int(fault.choice * len(some))]


def _freeze(pids: list[int], seconds: float) -> bool:
    """Stop processes for a while; return whether there were any."""
    if not send(signal.SIGSTOP, pids):
        return False
    time.sleep(seconds)
    send(signal.SIGCONT, pids)
    return True


def _java(pipeline: Pipeline) -> list[int]:
    """The process of a pipeline's JVM, if it is running."""
    with suppress(RuntimeError):
        return [pipeline.own.java]
    return []


def _sort(name: str) -> str:
    """Return a link's name without its number: "broker to PostgreSQL"."""
    return " ".join(word for word in name.split() if not word.isdigit())
