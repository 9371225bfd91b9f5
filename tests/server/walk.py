#!/usr/bin/env python3
"""A walk of clients through one busy server: walk.py PLUMB [--seed N] [--seeds N] [--steps N] [--kills N]

Clients begin conversations, go on, branch off, ask again, edit, hang up, read slowly; the server is stopped, killed
and started again in between.  Whatever answer comes to its end must be, byte for byte, the one that an idle server
gives which knows nothing of the prompt.  All that is asked follows from the seed alone: options, conversations, and
what is asked at the same time; only who comes first does not.

A walk goes in rounds.  The actors of a round ask at the same time, each one thing after the other; whatever a stop or
a kill cut short is asked once more of the next server.  --kills N ends each round by kill -9, N times, and looks
into the session store each time."""

import argparse
import collections
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from serving import PATIENCE, serving  # noqa: E402
from walk_clients import Cut, Left, Meter, exchange  # noqa: E402
from walk_dialects import CALL, DIALECTS, ID, same_of, usage_of  # noqa: E402
from walk_store import entries_of  # noqa: E402

CONTEXT = 1024
MOST_TURNS = 48    # that are remembered, to go on from
LEAST_TOKENS = 32  # that reading an entry of the store must save
ACTIONS = {"new": 3, "next": 5, "branch": 2, "regenerate": 2, "edit": 2, "repeat": 2, "twins": 2}
QUESTIONS = ["What is the capital of France?", "What is 2+2?", "Tell me a story.", "My name is Emma.", "北京 🙂?",
             "<｜User｜> <think>", "Why is the sky blue?", "a"]
LONG = [" ".join(f"word{(i * 37 + k * 11) % 101}" for i in range(30 + 45 * k)) for k in range(3)]
# What a log line may not say: nothing damages a store here.
FAULTS = ("damaged", "skipped", "not kept", "not restored", "cannot be used", "not counted", "not read", "not written",
          "not remembered", "not copied", "tidying")

Ask = collections.namedtuple("Ask", "kind name scene history manner path body")
Turn = collections.namedtuple("Turn", "ask items id life")  # an answer, and in which life of the server it was given


# ---- What is asked ----

def draw_options(rng, folder):
    options = {"--parallel": rng.randint(1, 8), "--prefill-chunk": rng.choice([8, 32, 100, 256]),
               "--queue": rng.choice([2, 256]), "-t": rng.choice([1, 1, 3])}
    if rng.random() < 0.4:
        options["--ssd-streaming-cache-experts"] = rng.choice([16, 60, 200])
    if folder:
        options |= {"--session-dir": folder, "--session-dir-size": rng.choice(["0.003GB", "20GB"])}
    return [str(part) for pair in options.items() for part in pair]


def draw_scene(rng, name):
    return {"system": rng.choice(["Be brief.", *LONG]), "tools": name != "completions" and rng.random() < 0.4,
            "effort": "low" if name in ("chat", "responses") and rng.random() < 0.2 else "none"}


def draw_manner(rng, scene, previous=None, known=0):
    form = rng.choice(["calls", "schema", None]) if scene["tools"] else rng.choice(["schema", None, None])
    sampling = {"temperature": 0}
    if rng.random() < 0.5:
        sampling = {"temperature": 1, "seed": rng.randrange(1 << 32), "top_p": rng.choice([1, 0.9]),
                    "top_k": rng.choice([0, 40])}
    if rng.random() < 0.3:
        sampling["logit_bias"] = {"1": -100}  # an answer that does not end by itself
    return {"most": 60 if form and scene["effort"] == "none" else rng.choice([1, 3, 8, 20]), "form": form,
            "sampling": sampling, "stream": rng.random() < 0.6, "logprobs": rng.choice([None, None, 0, 1, 5]),
            "runs": rng.choice([1, 1, 1, 2]), "stop": rng.choice([None, None, ["e"], ["th", "\n"]]),
            "echo": rng.random() < 0.2, "previous": previous, "known": known}


def make_ask(kind, name, scene, history, manner):
    dialect = DIALECTS[name]
    return Ask(kind, name, scene, history, manner, dialect.path, dialect.body(scene, history, manner))


def begin(rng):
    name = rng.choice(list(DIALECTS))
    scene = draw_scene(rng, name)
    return make_ask("new", name, scene, DIALECTS[name].reply([], rng.choice(QUESTIONS)), draw_manner(rng, scene))


def go_on(rng, kind, turn):
    """A turn behind an answer: a tool's result, where it called for one."""
    ask, dialect = turn.ask, DIALECTS[turn.ask.name]
    history = ask.history + turn.items
    previous = turn.id if ask.name == "responses" and rng.random() < 0.5 else None
    manner = draw_manner(rng, ask.scene, previous, len(history))
    reply = dialect.reply(dialect.calls(turn.items), rng.choice(QUESTIONS))
    return make_ask(kind, ask.name, ask.scene, history + reply, manner)


def ask_again(rng, kind, turn):
    ask = turn.ask
    if kind in ("repeat", "twins"):
        return ask._replace(kind=kind)
    manner = draw_manner(rng, ask.scene)
    history = ask.history
    if kind == "edit":
        # The first question, or any: what follows was an answer to another.
        places = [i for i, item in enumerate(history) if i % 2 == 0 and
                  (isinstance(item, str) or (item.get("role") == "user" and isinstance(item["content"], str)))]
        history = history[:rng.choice(places)] + DIALECTS[ask.name].reply([], rng.choice(QUESTIONS))
    return make_ask(kind, ask.name, ask.scene, history, manner)


def behind(text, other):
    """The text from a little before it is another."""
    return text[max(0, len(os.path.commonprefix([text, other])) - 200):][:600]


# ---- Actors ----

class Actor:
    """Asks one thing after the other; what each answer was stands in `done`."""

    def __init__(self, walk, seed, ask):
        self.walk, self.rng, self.ask = walk, random.Random(seed), ask
        self.left = self.rng.choice([0, 0, 1, 2])  # more turns behind the first
        self.done = []
        self.draw()

    def draw(self):
        """How the next answer is read: to its end, slowly, or not to its end."""
        way = self.rng.random()
        self.leave = self.rng.choice([0, 1, 300, 3000]) if way < 0.2 else None
        self.slow = 0.2 <= way < 0.3

    def run(self, port, meter):
        try:
            while self.ask:
                status, text = exchange(port, self.ask.path, self.ask.body, meter, self.leave, self.slow)
                turn = self.walk.turn_of(self.ask, status, text)
                self.done.append((self.ask, status, text, turn))
                self.ask = None
                if turn and self.left > 0:
                    self.left -= 1
                    self.ask = go_on(self.rng, "next", turn)
                    self.draw()
        except Left:
            self.done.append((self.ask, None, None, None))
            self.ask = None
        except Cut:
            pass  # and it is still to be asked
        except Exception as fault:  # pylint: disable=broad-except
            self.walk.faults.append(f"{type(fault).__name__} {fault} of {self.ask}")
        finally:
            meter.ended()


# ---- The walk ----

class Walk:
    def __init__(self, arguments, seed):
        self.arguments, self.seed, self.rng = arguments, seed, random.Random(seed)
        self.turns, self.faults, self.life = [], [], 0
        self.counts, self.rounds = collections.Counter(), 0
        self.twin = {}            # an id of the walked server's: that of the other's
        self.lost, self.doubtful = set(), set()  # calls that a restart has forgotten, or may have
        self.known = {}           # requests as the other server got them: what it said
        self.reference = None

    def turn_of(self, ask, status, text):
        if status != 200:
            return None
        dialect = DIALECTS[ask.name]
        ids = ID.findall(text)
        return Turn(ask, dialect.items(text), ids[0] if ids else None, self.life)

    def draw_ask(self):
        kinds = [k for k, weight in ACTIONS.items() for _ in range(weight)]
        kind = self.rng.choice(kinds) if self.turns else "new"
        if kind == "new":
            return begin(self.rng)
        turn = self.rng.choice(self.turns[-6:] if kind == "next" else self.turns)
        return go_on(self.rng, kind, turn) if kind in ("next", "branch") else ask_again(self.rng, kind, turn)

    def draw_actors(self):
        actors = []
        for _ in range(self.rng.choice([1, 2, 4, 6, 10])):
            ask = self.draw_ask()
            for _ in range(2 if ask.kind == "twins" else 1):
                actors.append(Actor(self, self.rng.randrange(1 << 32), ask))
        return actors

    def play(self, server, actors, ending):
        """Lets them ask at the same time; `ending`: (signal, bytes of all answers before it), or None."""
        meter = Meter(len(actors))
        threads = [threading.Thread(target=a.run, args=(server.port, meter)) for a in actors]
        for thread in threads:
            thread.start()
        if ending:
            meter.wait(ending[1])
            server.process.send_signal(ending[0])
        for thread in threads:
            thread.join()
        if ending:
            status = server.process.wait(PATIENCE)
            assert status == (0 if ending[0] == signal.SIGTERM else -ending[0]), f"status {status}: {server.said}"
        assert not self.faults, self.faults
        assert not [line for line in server.said if any(fault in line for fault in FAULTS)], server.said
        return [a for a in actors if a.ask]

    # ---- What the other server says ----

    def ask_reference(self, text, path):
        """The answer to a request that finds nothing: before it, the only session is brought to another token."""
        if (path, text) not in self.known:
            wiped = self.reference.ask("POST", "/v1/completions", {"prompt": [5], "max_tokens": 0, "echo": True})
            assert wiped[0] == 200, wiped
            self.known[path, text] = exchange(self.reference.port, path, text, Meter(1))
        return self.known[path, text]

    def candidates(self, body):
        """The request in ids of the other server.  It knows all calls; the walked one may have lost the latest in a
        kill: then it reads them as anybody's, which the other does for ids that are not its own."""
        text = json.dumps(body)
        calls = list(dict.fromkeys(CALL.findall(text)))
        doubtful = [c for c in calls if c in self.doubtful]
        for n in range(len(doubtful) + 1):
            gone = self.lost | set(doubtful[len(doubtful) - n:])
            yield ID.sub(lambda found: found[0] if found[0] in gone else self.twin.get(found[0], found[0]), text)

    def check(self, ask, status, text, life):
        """`life`: of the server that gave the answer."""
        previous = ask.manner["previous"]
        if previous and not any(t.id == previous and t.life == life for t in self.turns):
            assert status == 404, f"a response of another life: {status} {text}"
            return False
        if status == 200:
            usage = usage_of(text)
            self.counts["tokens of prompts"] += usage[0]
            self.counts["known"] += usage[1]
        same, ids = same_of(text)
        for wanted in self.candidates(ask.body):
            expected_status, expected = self.ask_reference(wanted, ask.path)
            expected_same, expected_ids = same_of(expected)
            if (status, same) == (expected_status, expected_same):
                break
        else:
            raise AssertionError(f"{ask.kind}: {ask.path} {json.dumps(ask.body, ensure_ascii=False)}\n"
                                 f"got {status} ...{behind(same, expected_same)}\n"
                                 f"of an idle server {expected_status} ...{behind(expected_same, same)}")
        assert status != 200 or usage_of(expected)[1] == 0, f"the other server knew it: {wanted}"
        self.twin.update(zip(ids, expected_ids))
        return True

    def settle(self, played):
        """Compares what a round has brought, in order, and remembers it."""
        for life, actors in played:
            for actor in actors:
                for ask, status, text, turn in actor.done:
                    self.counts[ask.kind if status else "hung up"] += 1
                    if turn:
                        self.turns.append(turn)
                    if status:
                        self.check(ask, status, text, life)
                actor.done = []
        self.turns = [t for t in self.turns if len(json.dumps(t.ask.body)) < 4 * CONTEXT][-MOST_TURNS:]

    # ---- Lives of the server ----

    def forget(self, ending, folder):
        """What a restart has taken away: responses always, calls by how it ended."""
        calls = {c for turn in self.turns for c in CALL.findall(json.dumps(turn.items))}
        if not folder:
            self.lost |= calls
        elif ending[0] == signal.SIGKILL:
            self.doubtful |= calls
        self.life += 1

    def draw_ending(self):
        if self.arguments.kills:
            return signal.SIGKILL, self.rng.choice([0, 1000, 5000, 20000, 60000])
        if self.rng.random() < 0.8:
            return None
        return self.rng.choice([signal.SIGTERM, signal.SIGKILL]), self.rng.choice([0, 500, 4000])

    def resume(self, server, folder):
        """A server that was killed: what its store has is whole, found again, and goes on as it should."""
        entries = entries_of(folder)
        shown = [line for line in server.ask("GET", "/metrics")[2].decode().split("\n")
                 if line.startswith("plumb_store_entries ")]
        assert shown == [f"plumb_store_entries {len(entries)}"], (shown, sorted(entries))
        for tokens in sorted(entries.values(), key=len)[-3:]:
            tokens = tokens[:CONTEXT - 16]
            body = {"prompt": [*tokens, 300], "max_tokens": 4, "temperature": 0, "logprobs": 2}
            answer = exchange(server.port, "/v1/completions", body, Meter(1))
            expected = self.ask_reference(json.dumps(body), "/v1/completions")
            assert same_of(answer[1])[0] == same_of(expected[1])[0], f"{answer}, expected {expected}"
            known = usage_of(answer[1])[1]
            # The sessions before it may share so much that reading it would save too little.
            assert known > len(tokens) - LEAST_TOKENS, f"{known} of {len(tokens)} tokens were found in the store"
            self.counts["sessions resumed"] += 1
        self.counts["kills"] += 1

    def live(self, options, folder, waiting):
        """One life of the server; returns the actors whom its end has cut short, or None: the walk is over."""
        unsettled = []
        with serving(self.arguments.plumb, *options, "-c", str(CONTEXT), "--nothink") as server:
            if self.killed and folder:
                self.resume(server, folder)
            while not self.is_over() or (waiting and not self.arguments.kills):
                ending = None if waiting and not self.arguments.kills else self.draw_ending()
                actors = waiting or self.draw_actors()
                self.rounds += 1
                waiting = self.play(server, actors, ending)
                unsettled.append((self.life, actors))
                if ending or self.rng.random() < 0.6:  # else the next round finds it as this one leaves it
                    self.settle(unsettled)
                    unsettled = []
                self.killed = ending is not None and ending[0] == signal.SIGKILL
                if ending:
                    self.forget(ending, folder)
                    return waiting
                assert not waiting, f"cut short by nothing: {[a.ask for a in waiting]}"
            self.settle(unsettled)
            server.until(lambda: all(s["state"] == "idle" for s in server.slots()), "idle slots")
        return None

    def is_over(self):
        if self.arguments.kills:
            return self.counts["kills"] >= self.arguments.kills
        return sum(self.counts[k] for k in (*ACTIONS, "hung up")) >= self.arguments.steps

    def run(self):
        with tempfile.TemporaryDirectory() as place:
            folder = os.path.join(place, "sessions") if self.arguments.kills or self.rng.random() < 0.6 else None
            options = draw_options(self.rng, folder)
            print(f"seed {self.seed}: {' '.join(options)}", flush=True)
            with serving(self.arguments.plumb, "--parallel", "1", "-t", "1", "-c", str(CONTEXT),
                         "--nothink") as self.reference:
                waiting, self.killed = [], False
                while waiting is not None:
                    waiting = self.live(options, folder, waiting)
                    self.counts["lives"] += 1
        print("  " + ", ".join(f"{n} {what}" for what, n in self.counts.items()), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plumb")
    parser.add_argument("--seed", type=int, default=1, help="of the first walk")
    parser.add_argument("--seeds", type=int, default=1, help="so many walks")
    parser.add_argument("--steps", type=int, default=60, help="requests of a walk, at least")
    parser.add_argument("--kills", type=int, default=0, help="a walk of so many kills instead")
    arguments = parser.parse_args()
    failed = 0
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        begun = time.time()
        try:
            Walk(arguments, seed).run()
            print(f"ok   seed {seed} ({time.time() - begun:.1f} s)", flush=True)
        except AssertionError as fault:
            failed += 1
            print(f"FAIL seed {seed}: {fault}", flush=True)
    print(f"{arguments.seeds - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
