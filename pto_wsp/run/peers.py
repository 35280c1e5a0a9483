"""Exchange bytes and words with the other ranks of an MPI communicator, and end a wait that nobody ends.

Copies between ranks travel on one communicator, words on another one: texts of errors, what ranks agree on, and that a rank has left. Both
are duplicates of the user's, bytes only, without sums by MPI. A wait listens to the words, so an error of one rank ends all.

This is the only module that imports mpi4py; it loads where a program is compiled with `comm=`.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from mpi4py import MPI

from pto_wsp.errors import MeshError, PeerError, RankDifferenceError
from pto_wsp.source import Span, here
from pto_wsp.values import dataclass

_WORDS_TAG = 1
_NAP_S = 50e-6              # between two looks at messages
_BEAT_S = 1.0               # how often a rank that takes part says so
_STANDS = 10                # times peer_timeout: how long one task may take before other ranks give up
_GRACE_S = 0.5              # after which what a rank sent before it left has arrived
_MOST_SHOWN = 60            # letters of a fact that ranks show; of others they show a digest
_MOST_TEXT = 3000           # bytes of an error that go to the other ranks
_REQUESTS_KEPT = 4096       # persistent requests of a program
_TESTED_ALONE = 4           # requests
_SENDS_KEPT = 64            # finished sends are looked for where more are under way


Computes = Callable[[], tuple[int, str] | None]


class Peers:
    """The ranks of a communicator: what this rank sends to the others, and receives from them.

    `timeout_s`: how long a wait for one message lasts. After a failure the ranks are `closed`: messages may be under way that nobody takes.
    """

    def __init__(self, comm: MPI.Comm, timeout_s: float, span: Span) -> None:
        """Duplicate a communicator; every rank of it does so at once.

        Raises: M106 where a rank does not.
        """
        self.rank, self.n, self.span = comm.Get_rank(), comm.Get_size(), span
        self.set_timeout(timeout_s)
        self.where = "compile(comm=...)"
        self.closed = False
        self.turn: Callable[[], None] = lambda: None
        self.computes: Computes = lambda: None   # see `beating`
        self.interrupt: Callable[[], None] = lambda: None     # ends what this rank computes
        self._lock = threading.RLock()           # of words and sends: the thread that beats takes and tells words, too
        self._over = threading.Event()
        self._beater: threading.Thread | None = None
        self._failure: tuple[int, PeerError] | None = None       # of another rank: exchanges that it had ended before, and what it says
        self._gone: dict[int, float] = {}
        self._heard: dict[int, float] = {}       # when a rank last said that it takes part
        self._stands: dict[int, tuple[int, str, float]] = {}     # tasks that a rank has ended, the task it is in, since when
        self._stood: set[tuple[int, str]] = set()                # of which a line was printed
        self._told_at = 0.0
        self._kept: list[object] = []
        self._words: dict[int, dict[int, tuple[str, str]]] = {}
        self._sequence = self._n_ended = 0       # exchanges that have begun, and that have ended
        self._sends: list[tuple[MPI.Request, Any]] = []
        self._listens = False
        self.spins = 0
        self._data, self._control = (self._duplicate(comm) for _ in range(2))
        self._listens = True
        limit = self._data.Get_attr(MPI.TAG_UB)
        self.most_tag = 32767 if limit is None else int(limit)
        _open_peers.append(self)
        _install(self._control)
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
        places = {rank: json.loads(text) for rank, text in self.exchange("start", json.dumps([MPI.Get_processor_name(), cores])).items()}
        self._neighbours = [rank for rank, (host, _) in places.items() if host == places[self.rank][0]]
        sharing = sum(not set(cores).isdisjoint(places[rank][1]) for rank in self._neighbours)
        self.threads = max(1, len(cores) // sharing)
        self.spins = 2000 if sharing <= len(cores) else 0
        self.spin_ns = 1000 * self.spins

    def set_timeout(self, timeout_s: float) -> None:
        """Set how long a wait for one message lasts, and ten times as long for a task that has begun."""
        self.timeout_s, self.task_timeout_s = timeout_s, _STANDS * timeout_s

    # threads: of kernels in this process, as many as its cores without those of other ranks on them; spins: polls before the first nap

    @property
    def may_beat_beside(self) -> bool:
        """Whether another thread may say that this rank takes part, while this one computes."""
        return bool(MPI.Query_thread() == MPI.THREAD_MULTIPLE)

    @property
    def may_leave_main_thread(self) -> bool:
        """Whether a thread that is not the main one may call MPI."""
        return bool(MPI.Query_thread() == MPI.THREAD_MULTIPLE or MPI.Is_thread_main())

    @property
    def builds_first(self) -> bool:
        """Whether this is the lowest rank of its machine, which compiles before the others."""
        return bool(self._neighbours[0] == self.rank)

    # -- copies --------------------------------------------------------------------------------------------------------

    def send(self, to: int, tag: int, data: bytes) -> None:
        """Begin to send the bytes of a copy."""
        with self._lock:
            self._sends.append((self.isend(to, tag, data), data))
            if len(self._sends) > _SENDS_KEPT:
                self._drop_sent()

    def receive(self, of: int, tag: int, n_bytes: int) -> bytearray:
        """Return the bytes of a copy from another rank.

        Raises: M106 where none come.
        """
        data = bytearray(n_bytes)
        self._wait(self.ireceive(of, tag, data).Test, lambda: (of,))
        return data

    def isend(self, to: int, tag: int, data: Any) -> MPI.Request:
        """Begin to send bytes, which stay as they are until the request has ended."""
        return self._data.Isend([data, len(data), MPI.BYTE], dest=to, tag=tag)

    def ireceive(self, of: int, tag: int, data: Any) -> MPI.Request:
        """Begin to receive bytes."""
        return self._data.Irecv([data, len(data), MPI.BYTE], source=of, tag=tag)

    def persistent(self, rank: int, tag: int, data: Any, *, receives: bool) -> MPI.Prequest:
        """Return a request that sends, or receives, bytes of the same memory at every start."""
        make = self._data.Recv_init if receives else self._data.Send_init
        return make([data, len(data), MPI.BYTE], rank, tag)

    def end_sends(self) -> None:
        """Wait until all copies that this rank sends have left it."""
        def done() -> bool:
            self._drop_sent()
            return not self._sends
        self._wait(done, lambda: None)

    def _drop_sent(self) -> None:
        with self._lock:
            self._sends = [(request, data) for request, data in self._sends if not request.Test()]

    # -- words ---------------------------------------------------------------------------------------------------------

    def exchange(self, kind: str, text: str) -> dict[int, str]:
        """Give every rank a text, and return the texts of all by rank. All ranks come to the same exchanges in one order.

        An exchange that one rank has ended ends on all of them: an error of a rank that comes behind the exchange is raised after it.

        Raises: M107 where another rank is elsewhere in its program, M106 where one does not come.
        """
        self._sequence += 1
        number = self._sequence
        self._tell({"number": number, "kind": kind, "text": text})
        others = [rank for rank in range(self.n) if rank != self.rank]
        found = self._words.setdefault(number, {})
        self._wait(lambda: len(found) == len(others), lambda: [rank for rank in others if rank not in found])
        del self._words[number]
        self._n_ended = number
        for rank, (there, _) in sorted(found.items()):
            if there != kind:
                raise RankDifferenceError(f"rank {rank} is elsewhere in its program than rank {self.rank}", self.span,
                                          expected=f"all ranks at: {kind}", found=f"rank {rank} is at: {there}",
                                          help="compile and run the same programs in the same order on every rank")
        return {rank: text if rank == self.rank else found[rank][1] for rank in range(self.n)}

    def agree(self, kind: str, facts: Mapping[str, bytes | str]) -> None:
        """Check that facts are equal on all ranks.

        Raises: M107 naming the first fact that differs and its first rank, alike on every rank.
        """
        told = {name: fact if isinstance(fact, str) and len(fact) <= _MOST_SHOWN else f"digest {_digest(fact)[:12]}"
                for name, fact in facts.items()}
        texts = self.exchange(kind, json.dumps(told))
        first = json.loads(texts[0])
        for rank in range(1, self.n):
            found = json.loads(texts[rank])
            for name in {**first, **found}:
                if first.get(name) != found.get(name):
                    there, here_too = (facts_of.get(name, "none") for facts_of in (found, first))
                    raise RankDifferenceError(
                        f"rank {rank} and rank 0 differ in {name}", self.span, expected="the same on all ranks",
                        found=f"{here_too} on rank 0, {there} on rank {rank}",
                        help="compile(portable=True) makes one code for all" if name == "the machine's code" else None)

    def report(self, problem: BaseException) -> None:
        """Tell the other ranks of an error of this one, and close."""
        if not self.closed:
            self.closed = True
            text = str(problem) or type(problem).__name__
            with contextlib.suppress(MPI.Exception):
                self._tell({"kind": "error", "ended": self._n_ended, "text": text.encode()[:_MOST_TEXT].decode(errors="ignore")})
                self._push(_GRACE_S)

    def leave(self) -> None:
        """Tell the other ranks that this one has ended its program."""
        with contextlib.suppress(MPI.Exception):
            self._tell({"kind": "left"})
            self._push(_GRACE_S)

    def _push(self, most_s: float) -> None:
        """Let what is under way leave, for a time."""
        end = time.monotonic() + most_s
        while self._sends and time.monotonic() < end:
            self._drop_sent()
            time.sleep(_NAP_S)

    def _tell(self, word: Mapping[str, object]) -> None:
        data = json.dumps(word).encode()
        for rank in range(self.n):
            if rank != self.rank and rank not in self._gone:
                with self._lock:
                    self._sends.append((self._control.Isend([data, len(data), MPI.BYTE], dest=rank, tag=_WORDS_TAG), data))

    def listen(self) -> None:
        """Take the words that have arrived, if the ranks know each other.

        Raises: M106 with the text of another rank's error.
        """
        failure = self._hear() if self._listens else None
        if failure is not None:
            self.closed = True
            raise failure

    def _hear(self) -> PeerError | None:
        """Take the words that have arrived, and return another rank's error; None while this rank is in an exchange that the other one
        had ended before."""
        with self._lock:
            self._take_words()
            return self._failure[1] if self._failure is not None and self._failure[0] <= self._n_ended else None

    def _take_words(self) -> None:
        status = MPI.Status()
        while self._control.Iprobe(source=MPI.ANY_SOURCE, tag=_WORDS_TAG, status=status):
            rank, size = status.Get_source(), status.Get_count(MPI.BYTE)
            data = bytearray(size)
            self._control.Recv([data, size, MPI.BYTE], source=rank, tag=_WORDS_TAG)
            word = json.loads(data.decode())
            match word["kind"]:
                case "error":
                    self._failure = self._failure or (word["ended"], PeerError(
                        f"rank {rank} failed", self.span, found=f"rank {self.rank} was at {self.where}",
                        notes=(f"rank {rank} says:", *word["text"].splitlines())))
                case "beat":
                    now = self._heard[rank] = time.monotonic()
                    if not word["at"]:
                        self._stands.pop(rank, None)
                    elif self._stands.get(rank, ())[:2] != (word["done"], word["at"]):
                        self._stands[rank] = word["done"], word["at"], now
                case "left":
                    self._gone[rank] = time.monotonic()
                case kind:
                    self._words.setdefault(word["number"], {})[rank] = kind, word["text"]

    # -- waiting -------------------------------------------------------------------------------------------------------

    def _wait(self, is_over: Callable[[], object], whom: Callable[[], Sequence[int] | None]) -> None:
        """Poll until something is over, listening to words; naps between where a short time has passed. `whom`: see `check_time`.

        Raises: M106 for an error of another rank, for one that has left, and after `timeout_s`.
        """
        patience = Patience(self, whom)
        while not is_over():
            patience.turn()

    @contextlib.contextmanager
    def beating(self, computes: Computes, interrupt: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Tell the others while a block runs that this rank takes part, as long as it computes.

        `computes`: how many tasks and copies of the block have ended and what it is in, "" for what may take any time, None while it is in
        nothing; `interrupt`: ends what it is in, as another rank has failed.
        """
        if self._beater is None and self.n > 1 and self.may_beat_beside:
            self._beater = threading.Thread(target=self._beat_beside, daemon=True)
            self._beater.start()
        before = self.computes, self.interrupt
        self.computes, self.interrupt = computes, interrupt
        try:
            yield
        finally:
            self.computes, self.interrupt = before

    def _beat_beside(self) -> None:
        while not self._over.wait(_BEAT_S / 2) and not self.closed:
            if self.computes() is None:
                continue
            self.beat(time.monotonic())
            if self._hear() is not None:        # the main thread raises the error
                self.interrupt()
                return

    def stop_beating(self) -> None:
        """End the thread that beats: it calls MPI, which is about to end."""
        self._over.set()
        if self._beater is not None:
            self._beater.join(2 * _BEAT_S)

    def since(self, whom: Sequence[int], started: float) -> float:
        """Return since when nothing has been heard of one of some ranks."""
        return min((max(started, self._heard.get(rank, started)) for rank in whom), default=started)

    def check_time(self, whom: Sequence[int] | None, started: float, now: float) -> None:
        """Check that ranks that are waited for may still come. `whom`: these; empty if all have just come, None if any may be.

        Raises: M106 for one that has left, and after `timeout_s`.
        """
        if whom is None and now - started > self.timeout_s:
            raise self._silence(())
        whom = whom or ()
        left = [rank for rank in whom if now - self._gone.get(rank, now) > _GRACE_S]
        if left:
            raise PeerError(f"{_ranks(left)} ended the program, and rank {self.rank} waits for it", self.span,
                            found=f"rank {self.rank} is at {self.where}", expected="all ranks run the same programs")
        for rank in whom:
            self._check_task(rank, now)
        silent = [rank for rank in whom if now - self.since((rank,), started) > self.timeout_s]
        if silent:
            raise self._silence(silent)

    def _silence(self, silent: Sequence[int]) -> PeerError:
        return PeerError(f"rank {self.rank} waited {self.timeout_s:g} s for {_ranks(silent)}", self.span,
                         found=f"rank {self.rank} is at {self.where}", expected=f"a message within peer_timeout={self.timeout_s:g}",
                         help="a rank hangs, or its script computes longer between two programs: compile(peer_timeout=...) waits longer")

    def _check_task(self, rank: int, now: float) -> None:
        """Check that a rank that is waited for goes on: a task of it may take long, but not for ever."""
        _, at, since = self._stands.get(rank, (0, "", now))
        stands_s = now - since
        if stands_s > self.task_timeout_s:
            raise PeerError(f"rank {rank} has been in {at} for {stands_s:.0f} s, and nothing of it has ended", self.span,
                            found=f"rank {self.rank} is at {self.where}",
                            expected=f"the end of a task within {self.task_timeout_s:g} s, {_STANDS} times peer_timeout",
                            help="a loop there may have no end; if it computes this long, compile(peer_timeout=...) waits longer")
        if stands_s > self.timeout_s and (rank, at) not in self._stood:
            self._stood.add((rank, at))
            print(f"pto_wsp: rank {rank} has been in {at} for {stands_s:.0f} s, and rank {self.rank} waits for it, at {self.where}",
                  file=sys.stderr, flush=True)

    def keep(self, memory: object) -> None:
        """Keep memory that messages under way still use."""
        self._kept.append(memory)

    def beat(self, now: float) -> None:
        """Tell the other ranks once a second that this one takes part: it computes, or waits as they do."""
        if self._listens and now - self._told_at > _BEAT_S:
            self._told_at = now
            self._drop_sent()
            done, at = self.computes() or (0, "")
            self._tell({"kind": "beat", "done": done, "at": at})

    def _duplicate(self, comm: MPI.Comm) -> MPI.Comm:
        made, request = comm.Idup()
        self._wait(request.Test, lambda: None)
        return made


class Patience:
    """A wait for other ranks: polls, then naps between, and ends where nobody can be waited for."""

    def __init__(self, peers: Peers, whom: Callable[[], Sequence[int] | None]) -> None:
        self._peers, self._whom = peers, whom
        self._n = 0
        self._since: float | None = None
        self._idle_s = 0.0
        self._was_said = False

    def begin(self) -> None:
        """Start anew: something has ended."""
        self._n, self._since, self._was_said = 0, None, False

    def look(self) -> None:
        """Take words that have arrived, at every eighth call: this rank has something to do.

        Raises: M106 for an error of another rank.
        """
        self._n += 1
        if self._n % 8 == 0:
            self._peers.listen()
            self._peers.beat(time.monotonic())

    def wait(self, idle_s: float) -> None:
        """Pass a short time, where for another time nothing has ended.

        Raises: M106 for an error of another rank, for one that has left, and after `timeout_s`.
        """
        if idle_s < self._idle_s:
            self.begin()
        self._peers.listen()
        now = time.monotonic()
        self._idle_s, self._since = idle_s, now - idle_s
        self._pass(now, self._since)

    def turn(self) -> None:
        """Pass a short time.

        Raises: M106 for an error of another rank, for one that has left, and after `timeout_s`.
        """
        peers = self._peers
        self._n += 1
        if self._n % 8 and self._n <= peers.spins:
            return
        peers.listen()
        if self._n <= peers.spins:
            return
        now = time.monotonic()
        if self._since is None:
            self._since = now
        self._pass(now, self._since)

    def _pass(self, now: float, since: float) -> None:
        peers, whom = self._peers, self._whom()
        peers.turn()
        peers.beat(now)
        peers.check_time(whom, since, now)
        waited = now - peers.since(whom or (), since)
        if not self._was_said and waited > min(10.0, peers.timeout_s / 2):
            self._was_said = True
            print(f"pto_wsp: rank {peers.rank} has waited {waited:.0f} s for {_ranks(whom or ())}, at {peers.where}", file=sys.stderr,
                  flush=True)
        time.sleep(_NAP_S if now - since < 0.1 else 1e-3)


class Transfers:
    """Copies under way between this rank's memory and other ranks that the engine does not begin itself. `begin` starts one, `ended`
    returns the numbers of those that are over.

    A copy from or to memory that stays is a persistent request of MPI, so that the engine can begin the copy in later runs.

    Invariant: the lists of open copies have a row each: request, number, rank, and what is done with the bytes that have come.
    """

    def __init__(self, peers: Peers) -> None:
        self.peers = peers
        self._requests: list[MPI.Prequest | MPI.Request] = []
        self._numbers: list[int] = []
        self._ranks: list[int] = []
        self._finish: list[Callable[[], None] | None] = []
        self._kept: dict[int, MPI.Prequest] = {}      # by key
        self._generation = -1

    def is_new(self, generation: int) -> bool:
        """Tell whether the tasks of a run are others than before, and drop the requests of those. `generation`: of the record of tasks."""
        if generation == self._generation:
            return False
        self._generation = generation
        for request in self._kept.values():
            request.Free()
        self._kept = {}
        return True

    def take_back(self, keys: Iterable[int], memory: object) -> None:
        """End a run that has failed: the peers keep the memory of what is under way. `keys`: of copies that the engine has begun."""
        for request in (*self._requests, *(self._kept[key] for key in keys)):
            with contextlib.suppress(MPI.Exception):
                request.Cancel()
        self.peers.keep((self._requests, self._finish, self._kept, memory))
        self._requests, self._numbers, self._ranks, self._finish, self._kept = [], [], [], [], {}

    @property
    def ranks(self) -> set[int]:
        """The ranks of what is under way."""
        return set(self._ranks)

    @property
    def first(self) -> int | None:
        """The number of the copy that has been under way for the longest time."""
        return self._numbers[0] if self._numbers else None

    def begin(self, key: int | None, number: int, rank: int, tag: int, data: Any, *, receives: bool,
              finish: Callable[[], None] | None = None) -> int | None:
        """Begin to send or to receive bytes; `finish` is called when they are there.

        `key`: of the copy in its run, where `data` stays. Returns the address of the request that begins such a copy anew.
        """
        peers, address = self.peers, None
        if key is not None and len(self._kept) < _REQUESTS_KEPT:
            self._kept[key] = request = peers.persistent(rank, tag, data, receives=receives)
            request.Start()
            self._requests.append(request)
            address = int(MPI._addressof(request))
        else:
            self._requests.append(peers.ireceive(rank, tag, data) if receives else peers.isend(rank, tag, data))
        self._numbers.append(number)
        self._ranks.append(rank)
        self._finish.append(finish)
        return address

    def ended(self) -> list[int]:
        """Return the numbers of the copies that have ended since."""
        requests = self._requests
        if len(requests) <= _TESTED_ALONE:
            done = [at for at, request in enumerate(requests) if request.Test()]
        else:
            done = sorted(MPI.Request.Testsome(requests) or ())
        numbers = []
        for at in reversed(done):
            del requests[at], self._ranks[at]
            numbers.append(self._numbers.pop(at))
            finish = self._finish.pop(at)
            if finish is not None:
                finish()
        return numbers


@dataclass(frozen=True, slots=True)
class RequestFunctions:
    """Addresses of MPI_Start and MPI_Testsome, and the bytes of a request's handle and of a status."""

    start: int
    test: int
    request_bytes: int
    status_bytes: int


def request_functions() -> RequestFunctions | None:
    """Return the functions of the MPI library that begin and test requests; None if the library does not show them."""
    try:
        library = ctypes.CDLL(MPI.__file__)
        start, test = (ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in ("MPI_Start", "MPI_Testsome"))
    except (OSError, AttributeError):
        return None
    sizes = int(MPI._sizeof(MPI.Request)), int(MPI._sizeof(MPI.Status))
    return None if start is None or test is None or sizes[0] > 8 else RequestFunctions(start, test, *sizes)


def mpi_error(code: int) -> Exception:
    """Return the error for what a function of MPI has returned."""
    error: Exception = MPI.Exception(code)     # without mpi4py's types this is Any
    return error


def _digest(fact: bytes | str) -> str:
    return hashlib.sha256(fact.encode() if isinstance(fact, str) else fact).hexdigest()[:32]


def _ranks(ranks: Sequence[int]) -> str:
    return "the other ranks" if not ranks else f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"


# -- peers of a communicator, and the end of the process ---------------------------------------------------------------
_open_peers: list[Peers] = []
_known: dict[int, Peers] = {}
_hooked: list[MPI.Comm] = []


def peers_of(comm: object, n_ranks: int, timeout_s: float) -> Peers:
    """Return the ranks of a communicator, which all programs that use it share until one fails.

    Raises: M102 for what is no communicator, or has another size than the mesh; M106 where a rank does not come.
    """
    if not isinstance(comm, MPI.Intracomm):
        raise MeshError("comm is no communicator of mpi4py", here(), expected="MPI.COMM_WORLD",
                        found=f"{type(comm).__name__}: {comm!r:.60}")
    if comm.Get_size() != n_ranks:
        raise MeshError("the communicator has another size than the mesh", here(), expected=f"{n_ranks} ranks", found=f"{comm.Get_size()}",
                        help=f"start as many: mpirun -n {n_ranks} python -m mpi4py script.py")
    if MPI.Query_thread() < MPI.THREAD_FUNNELED:
        raise MeshError("MPI runs without threads", here(), expected="at least MPI.THREAD_FUNNELED", found="MPI.THREAD_SINGLE",
                        help='leave mpi4py.rc.thread_level at "multiple"')
    found = _known.get(MPI._handleof(comm))
    if found is None or found.closed:
        found = _known[MPI._handleof(comm)] = Peers(comm, timeout_s, here())
    found.set_timeout(timeout_s)
    return found


def _install(comm: MPI.Comm) -> None:
    """End all ranks when an exception ends this one, and say at the end of this process that it leaves."""
    if _hooked:
        return
    _hooked.append(comm)
    atexit.register(_leave)
    before = sys.excepthook

    def abort(kind: type[BaseException], problem: BaseException, trace: TracebackType | None) -> None:
        before(kind, problem, trace)
        sys.stdout.flush()
        sys.stderr.flush()
        for peers in _open_peers:
            peers.report(problem)
        time.sleep(2 * _GRACE_S)      # the others print what they know of it
        comm.Abort(1)

    sys.excepthook = abort


def _leave() -> None:
    if not MPI.Is_finalized():
        for peers in _open_peers:
            peers.stop_beating()
            if not peers.closed:
                peers.leave()
