#!/usr/bin/env python3
"""Computes the expected counts of route_replay_test.c: the same made-up routes through the plainest
cache there is, a list of slots that is searched for everything.  Prints rows of the test's table."""
from fractions import Fraction

LAYERS, EXPERTS, K = 6, 16, 3
# (rows in the lower four layers, rows in the upper two) of each batch
BATCHES = [(20, 5)] + [(1, 1)] * 60 + [(7, 7)] + [(1, 1)] * 40 + [(9, 0)] + [(1, 1)] * 20


class Random:
    def __init__(self):
        self.state = 1

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n


def routes():
    """(batch, layer, position, ids) in the order of evaluation."""
    random, position = Random(), 0
    for batch, (lower, upper) in enumerate(BATCHES):
        for layer in range(LAYERS):
            rows = lower if layer < 4 else upper
            for row in range(lower - rows, lower):
                ids = []
                while len(ids) < K:
                    # The smaller of two: low numbers are popular.
                    chosen = min(random.below(EXPERTS), random.below(EXPERTS))
                    if chosen not in ids:
                        ids.append(chosen)
                yield batch, layer, position + row, ids
        position += lower


def groups():
    """(batch rows, layer, {expert: rows}) with all rows of a batch and layer together."""
    found = {}
    for batch, layer, _, ids in routes():
        counts = found.setdefault((batch, layer), {})
        for expert in ids:
            counts[expert] = counts.get(expert, 0) + 1
    for (batch, layer), counts in found.items():
        yield BATCHES[batch][0], layer, counts


class Cache:
    def __init__(self, size, by_use):
        self.slots, self.by_use = [None] * size, by_use
        self.last, self.uses, self.pinned, self.clock = {}, {}, set(), 0
        self.passing = set()

    def hold(self, key, rows):
        self.clock += 1
        self.last[key] = self.clock
        self.uses[key] = self.uses.get(key, 0) + rows
        self.pinned.add(key)
        self.passing.discard(key)

    def weight(self, key):
        """What gives way has the largest."""
        age = self.clock - self.last[key]
        return Fraction(age, 1 + self.uses[key]) if self.by_use else age

    def load(self, key):
        if len(self.pinned) == len(self.slots):
            self.pinned.clear()
        if None in self.slots:
            place = self.slots.index(None)
        else:
            free = [i for i, held in enumerate(self.slots) if held not in self.pinned]
            place = max(free, key=lambda i: (self.slots[i] in self.passing,
                                             self.weight(self.slots[i]), -i))
        displaced = self.slots[place] is not None
        self.passing.discard(self.slots[place])
        self.slots[place] = key
        self.clock += 1  # a load counts as well
        return displaced

    def serve(self, layer, counts):
        missing = []
        for expert in sorted(counts):
            if (layer, expert) in self.slots:
                self.hold((layer, expert), counts[expert])
            else:
                missing.append(expert)
        for expert in missing:
            displaced = self.load((layer, expert))
            self.hold((layer, expert), counts[expert])
            if displaced and 2 * len(counts) > EXPERTS:  # a sweep only passes through
                self.passing.add((layer, expert))
        self.pinned.clear()
        return len(counts) - len(missing)


def main():
    for size in (1, 2, 5, 18, 24, 40, 64, 96, 500):
        for by_use in (False, True):
            cache, counts = Cache(min(size, LAYERS * EXPERTS), by_use), {True: [0, 0], False: [0, 0]}
            for rows, layer, experts in groups():
                kind = counts[rows == 1]
                kind[0] += len(experts)
                kind[1] += cache.serve(layer, experts)
            name = "PLUMB_EVICT_AGE_OVER_USE" if by_use else "PLUMB_EVICT_LRU"
            print(f"    {{{size}, {name}, {counts[True][0]}, {counts[True][1]}, "
                  f"{counts[False][0]}, {counts[False][1]}}},")
    print("distinct", len({(layer, e) for _, layer, _, ids in routes() for e in ids}))


if __name__ == "__main__":
    main()
