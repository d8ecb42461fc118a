# SPDX-License-Identifier: MIT
"""What really happened: the logs of the parties, and the share of the culprit in them.

A scenario says for each request how many nanoseconds the culprit took from it (attributed).  The
share is then computed as design.md computes a finding's, but from these logs alone:

    (mean over slow - mean over typical) of attributed
    --------------------------------------------------   slow: above the 95th percentile,
    (mean over slow - mean over typical) of duration     typical: 25th to 75th
"""

import bisect
import typing


class Request(typing.NamedTuple):
    id: int
    start: int
    first: int
    end: int
    status: int
    name: str

    @property
    def ns(self):
        return self.end - self.start


class Event(typing.NamedTuple):
    id: int
    kind: str
    start: int
    end: int

    @property
    def ns(self):
        return self.end - self.start


def read_requests(path):
    with open(path, encoding="utf-8") as lines:
        rows = [line.split() for line in lines]
    return [Request(*map(int, r[:5]), r[5]) for r in rows]


def read_events(path):
    with open(path, encoding="utf-8") as lines:
        rows = [line.split() for line in lines]
    return [Event(int(r[0]), r[1], int(r[2]), int(r[3])) for r in rows]


def by_id(events, kind):
    """{id: the last event of that kind}"""
    return {e.id: e for e in events if e.kind == kind}


class Spans:
    """Intervals that do not overlap, asked for what they cover of another."""

    def __init__(self, intervals):
        ordered = sorted((s, e) for s, e in intervals if e > s)
        self.starts = [s for s, _ in ordered]
        self.ends = [e for _, e in ordered]
        self.before = [0]
        for s, e in ordered:
            self.before.append(self.before[-1] + e - s)

    def until(self, t):
        """How much they cover of everything up to t."""
        i = bisect.bisect_right(self.starts, t)
        if not i:
            return 0
        return self.before[i] - max(0, self.ends[i - 1] - t)

    def within(self, start, end):
        return self.until(end) - self.until(start) if end > start else 0


class InFlight:
    """How many of a set of (overlapping) intervals are open, over time."""

    def __init__(self, intervals):
        changes = sorted([(s, 1) for s, e in intervals] + [(e, -1) for s, e in intervals])
        self.times, self.counts = [], []
        n = 0
        for t, step in changes:
            n += step
            self.times.append(t)
            self.counts.append(n)

    def pieces(self, start, end):
        """(ns, count) tiling [start, end)."""
        i = bisect.bisect_right(self.times, start)
        at, n = start, self.counts[i - 1] if i else 0
        while i < len(self.times) and self.times[i] < end:
            yield self.times[i] - at, n
            at, n = self.times[i], self.counts[i]
            i += 1
        yield end - at, n


def percentile(ordered, p):
    """Nearest rank."""
    return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * p // 100) - 1))]


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else 0.0


class Share(typing.NamedTuple):
    share: float
    extra_ns: float
    slow: int
    affected: float  # the part of all requests from which the culprit took anything that counts


def culprit_share(requests, attributed):
    """None when there are too few requests, or none was slow enough to be a matter."""
    if len(requests) < 20:
        return None
    ordered = sorted(r.ns for r in requests)
    p25, p75, p95 = (percentile(ordered, p) for p in (25, 75, 95))
    slow = [r for r in requests if r.ns > p95]
    typical = [r for r in requests if p25 <= r.ns <= p75]
    longer = mean(r.ns for r in slow) - mean(r.ns for r in typical)
    base = mean(attributed(r) for r in typical)
    extra = mean(attributed(r) for r in slow) - base
    affected = mean(attributed(r) > base + 0.1 * extra for r in requests)
    return Share(extra / longer if longer else 0.0, extra, len(slow), affected)
