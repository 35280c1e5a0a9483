"""Exchange bytes and words with the other ranks of an MPI communicator, and end a wait that nobody ends.

Copies between ranks travel on one communicator, words on another one: texts of errors, what ranks agree on, and that a rank has left. Both
are duplicates of the user's, bytes only, without sums by MPI. A wait listens to the words, so an error of one rank ends all.

This is the only module that imports mpi4py; it loads where a program is compiled with `comm=`.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np
from mpi4py import MPI

from pto_wsp.errors import MeshError, PeerError, RankDifferenceError
from pto_wsp.source import Span, here

_WORDS_TAG = 1
_NAP_S = 50e-6              # between two looks at messages
_LONG_NAP_S = 200e-6        # while kernels run
_BEAT_S = 1.0               # how often a rank that takes part says so
POLLS = 16                 # looks at messages between two looks at the engine
_GRACE_S = 0.5              # after which what a rank sent before it left has arrived
_MOST_TEXT = 3000           # bytes of an error that go to the other ranks
_REQUESTS_KEPT = 4096       # persistent requests of a program
_TESTED_ALONE = 4           # requests
_SENDS_KEPT = 64            # finished sends are looked for where more are under way


class Peers:
    """The ranks of a communicator: what this rank sends to the others, and receives from them.

    `timeout_s`: how long a wait for one message lasts. After a failure the ranks are `closed`: messages may be under way that nobody takes.
    """

    def __init__(self, comm: MPI.Comm, timeout_s: float, span: Span) -> None:
        """Duplicate a communicator; every rank of it does so at once.

        Raises: M106 where a rank does not.
        """
        self.rank, self.n, self.timeout_s, self.span = comm.Get_rank(), comm.Get_size(), timeout_s, span
        self.where = "compile(comm=...)"
        self.closed = False
        self.turn: Callable[[], None] = lambda: None
        self._gone: dict[int, float] = {}
        self._heard: dict[int, float] = {}       # when a rank last said that it takes part
        self._told_at = 0.0
        self._kept: list[object] = []
        self._words: dict[int, dict[int, tuple[str, str]]] = {}
        self._sequence = 0
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

    # threads: of kernels in this process, as many as its cores without those of other ranks on them; spins: polls before the first nap

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
        self._wait(done, lambda: ())

    def _drop_sent(self) -> None:
        self._sends = [(request, data) for request, data in self._sends if not request.Test()]

    # -- words ---------------------------------------------------------------------------------------------------------

    def exchange(self, kind: str, text: str) -> dict[int, str]:
        """Give every rank a text, and return the texts of all by rank. All ranks come to the same exchanges in one order.

        Raises: M107 where another rank is elsewhere in its program, M106 where one does not come.
        """
        self._sequence += 1
        number = self._sequence
        self._tell({"number": number, "kind": kind, "text": text})
        others = [rank for rank in range(self.n) if rank != self.rank]
        found = self._words.setdefault(number, {})
        self._wait(lambda: len(found) == len(others), lambda: [rank for rank in others if rank not in found])
        del self._words[number]
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
        digests = {name: _digest(fact) for name, fact in facts.items()}
        texts = self.exchange(kind, json.dumps(digests))
        first = json.loads(texts[0])
        for rank in range(1, self.n):
            found = json.loads(texts[rank])
            for name in {**first, **found}:
                if first.get(name) != found.get(name):
                    there, here_too = (facts_of.get(name, "none")[:8] for facts_of in (found, first))
                    raise RankDifferenceError(
                        f"rank {rank} and rank 0 differ in {name}", self.span, expected="the same on all ranks",
                        found=f"digest {here_too} on rank 0, {there} on rank {rank}",
                        help="compile(portable=True) makes one code for all" if name == "the machine's code" else None)

    def report(self, problem: BaseException) -> None:
        """Tell the other ranks of an error of this one, and close."""
        if not self.closed:
            self.closed = True
            text = str(problem) or type(problem).__name__
            with contextlib.suppress(MPI.Exception):
                self._tell({"kind": "error", "text": text.encode()[:_MOST_TEXT].decode(errors="ignore")})
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
                self._sends.append((self._control.Isend([data, len(data), MPI.BYTE], dest=rank, tag=_WORDS_TAG), data))

    def listen(self) -> None:
        """Take the words that have arrived, if the ranks know each other.

        Raises: M106 with the text of another rank's error.
        """
        if not self._listens:
            return
        status = MPI.Status()
        while self._control.Iprobe(source=MPI.ANY_SOURCE, tag=_WORDS_TAG, status=status):
            rank, size = status.Get_source(), status.Get_count(MPI.BYTE)
            data = bytearray(size)
            self._control.Recv([data, size, MPI.BYTE], source=rank, tag=_WORDS_TAG)
            word = json.loads(data.decode())
            match word["kind"]:
                case "error":
                    self.closed = True
                    raise PeerError(f"rank {rank} failed", self.span, found=f"rank {self.rank} was at {self.where}",
                                    notes=(f"rank {rank} says:", *word["text"].splitlines()))
                case "beat":
                    self._heard[rank] = time.monotonic()
                case "left":
                    self._gone[rank] = time.monotonic()
                case kind:
                    self._words.setdefault(word["number"], {})[rank] = kind, word["text"]

    # -- waiting -------------------------------------------------------------------------------------------------------

    def _wait(self, is_over: Callable[[], object], whom: Callable[[], Sequence[int]]) -> None:
        """Poll until something is over, listening to words; naps between where a short time has passed.

        Raises: M106 for an error of another rank, for one that has left, and after `timeout_s`.
        """
        patience = Patience(self, whom)
        while not is_over():
            patience.turn()

    @contextlib.contextmanager
    def beating(self) -> Iterator[None]:
        """Tell the others while a block runs, such as a compiler, that this rank takes part."""
        if MPI.Query_thread() != MPI.THREAD_MULTIPLE or self.n == 1:
            yield
            return
        over = threading.Event()

        def beat() -> None:
            while not over.wait(_BEAT_S):
                self.beat(time.monotonic())
        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def since(self, whom: Sequence[int], started: float) -> float:
        """Return since when nothing has been heard of one of some ranks."""
        return min((max(started, self._heard.get(rank, started)) for rank in whom), default=started)

    def check_time(self, whom: Sequence[int], started: float, now: float) -> None:
        """Check that ranks that are waited for may still come.

        Raises: M106 for one that has left, and after `timeout_s`.
        """
        left = [rank for rank in whom if now - self._gone.get(rank, now) > _GRACE_S]
        if left:
            raise PeerError(f"{_ranks(left)} ended the program, and rank {self.rank} waits for it", self.span,
                            found=f"rank {self.rank} is at {self.where}", expected="all ranks run the same programs")
        silent = [rank for rank in whom if now - self.since((rank,), started) > self.timeout_s]
        if silent or (not whom and now - started > self.timeout_s):
            raise PeerError(f"rank {self.rank} waited {self.timeout_s:g} s for {_ranks(silent)}", self.span,
                            found=f"rank {self.rank} is at {self.where}", expected=f"a message within peer_timeout={self.timeout_s:g}",
                            help="a rank hangs, or its script computes longer between two programs: compile(peer_timeout=...) waits longer")

    def keep(self, memory: object) -> None:
        """Keep memory that messages under way still use."""
        self._kept.append(memory)

    def beat(self, now: float) -> None:
        """Tell the other ranks once a second that this one takes part: it computes, or waits as they do."""
        if self._listens and now - self._told_at > _BEAT_S:
            self._told_at = now
            self._drop_sent()
            self._tell({"kind": "beat"})

    def _duplicate(self, comm: MPI.Comm) -> MPI.Comm:
        made, request = comm.Idup()
        self._wait(request.Test, lambda: ())
        return made


class Patience:
    """A wait for other ranks: polls, then naps between, and ends where nobody can be waited for."""

    def __init__(self, peers: Peers, whom: Callable[[], Sequence[int]]) -> None:
        self._peers, self._whom = peers, whom
        self._n = 0
        self._since: float | None = None
        self._was_said = False

    def begin(self) -> None:
        """Start anew: something has ended."""
        self._n, self._since, self._was_said = 0, None, False

    def compute(self) -> None:
        """Pass a time in which this rank's own tasks run: looks at messages take it from their core.

        Raises: M106 for an error of another rank.
        """
        self.begin()
        peers = self._peers
        peers.listen()
        peers.beat(time.monotonic())
        time.sleep(_LONG_NAP_S)

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
        peers.turn()
        now = time.monotonic()
        if self._since is None:
            self._since = now
        peers.beat(now)
        peers.check_time(self._whom(), self._since, now)
        waited = now - peers.since(self._whom(), self._since)
        if not self._was_said and waited > min(10.0, peers.timeout_s / 2):
            self._was_said = True
            print(f"pto_wsp: rank {peers.rank} has waited {waited:.0f} s for {_ranks(self._whom())}, at {peers.where}", file=sys.stderr,
                  flush=True)
        time.sleep(_NAP_S if now - self._since < 0.1 else 1e-3)


class Transfers:
    """Copies under way between this rank's memory and other ranks. `begin` starts one, `ended` returns the numbers of those that are over.

    A copy that was begun in a run of the same tasks on the same memory is a persistent request of MPI: `again` starts it anew.

    Invariant: the lists of open copies have a row each: request, number, rank, and what is done with the bytes that have come.
    """

    def __init__(self, peers: Peers) -> None:
        self.peers = peers
        self.sent = np.zeros(peers.n, np.int64)       # bytes to each rank in the last run
        self.patience = Patience(peers, self.whom)
        self._requests: list[MPI.Prequest | MPI.Request] = []
        self._numbers: list[int] = []
        self._ranks: list[int] = []
        self._finish: list[Callable[[], None] | None] = []
        self._kept: dict[int, tuple[MPI.Prequest, int, int]] = {}      # by key: request, rank, bytes that it sends
        self._counts = [0] * peers.n
        self._generation = -1

    def start(self, generation: int) -> None:
        """Begin a run. `generation`: of the record of tasks; its requests are kept while it stays."""
        self._counts = [0] * self.peers.n
        if generation != self._generation:
            self._generation = generation
            self._free_kept()

    def stop(self, memory: object) -> None:
        """End a run; of one that has failed, take back what has not come: the peers keep the memory of what is under way."""
        self.sent[:] = self._counts
        if self._requests:
            for request in self._requests:
                with contextlib.suppress(MPI.Exception):
                    request.Cancel()
            self.peers.keep((self._requests, self._finish, self._kept, memory))
            self._requests, self._numbers, self._ranks, self._finish, self._kept = [], [], [], [], {}

    def _free_kept(self) -> None:
        for request, _, _ in self._kept.values():
            request.Free()
        self._kept = {}

    def whom(self) -> tuple[int, ...]:
        """Return the ranks of what is under way."""
        return tuple(sorted(set(self._ranks)))

    def __len__(self) -> int:
        return len(self._requests)

    @property
    def first(self) -> int | None:
        """The number of the copy that has been under way for the longest time."""
        return self._numbers[0] if self._numbers else None

    def again(self, key: int, number: int) -> bool:
        """Begin a copy that an earlier run has begun; False if none has."""
        kept = self._kept.get(key)
        if kept is None:
            return False
        request, rank, size = kept
        request.Start()
        self._counts[rank] += size
        self._requests.append(request)
        self._numbers.append(number)
        self._ranks.append(rank)
        self._finish.append(None)
        return True

    def begin(self, key: int | None, number: int, rank: int, tag: int, data: Any, *, receives: bool,
              finish: Callable[[], None] | None = None) -> None:
        """Begin to send or to receive bytes; `finish` is called when they are there. `key`: of the copy in its run, where `data` stays."""
        if key is not None and len(self._kept) < _REQUESTS_KEPT:
            self._kept[key] = self.peers.persistent(rank, tag, data, receives=receives), rank, 0 if receives else len(data)
            self.again(key, number)
            return
        self._counts[rank] += 0 if receives else len(data)
        self._requests.append(self.peers.ireceive(rank, tag, data) if receives else self.peers.isend(rank, tag, data))
        self._numbers.append(number)
        self._ranks.append(rank)
        self._finish.append(finish)

    def ended(self) -> list[int]:
        """Return the numbers of the copies that have ended since."""
        requests = self._requests
        if len(requests) <= _TESTED_ALONE:
            done = [at for at, request in enumerate(requests) if request.Test()]
        else:
            done = sorted(MPI.Request.Testsome(requests) or ())
        if not done:
            return []
        numbers = []
        for at in reversed(done):
            del requests[at], self._ranks[at]
            numbers.append(self._numbers.pop(at))
            finish = self._finish.pop(at)
            if finish is not None:
                finish()
        return numbers


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
    found.timeout_s = timeout_s
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
            if not peers.closed:
                peers.leave()
