# SPDX-License-Identifier: MIT
"""The judges of bench/culprits are themselves judged, on cases worked out by hand."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "culprits"))

import truth  # noqa: E402
import verdict  # noqa: E402


def requests(durations):
    return [truth.Request(i, 1000 * i, 0, 1000 * i + ns, 200, "/item")
            for i, ns in enumerate(durations)]


def test_spans():
    spans = truth.Spans([(30, 40), (10, 20)])
    assert spans.within(0, 100) == 20
    assert spans.within(15, 35) == 10
    assert spans.within(20, 30) == 0
    assert spans.within(12, 14) == 2
    assert spans.within(40, 30) == 0


def test_in_flight():
    """    0        10        20        30
           [---------------]                 two of them overlap in [10, 15)
                    [---------------]                                          """
    open_ = truth.InFlight([(0, 15), (10, 25)])
    assert list(open_.pieces(5, 30)) == [(5, 1), (5, 2), (10, 1), (5, 0)]
    assert list(truth.InFlight([]).pieces(3, 5)) == [(2, 0)]


def test_share():
    """95 of 100 take 100 ns; five take 300, of which the culprit has 150 and had 0 of the rest:
    150 / (300 - 100)."""
    asked = requests([100] * 95 + [300] * 5)
    share = truth.culprit_share(asked, lambda r: 150 if r.ns == 300 else 0)
    assert (round(share.share, 3), share.slow, round(share.affected, 2)) == (0.75, 5, 0.05)
    assert truth.culprit_share(asked[:19], lambda r: 0) is None


CULPRIT = {"kind": "cgroup", "cgroup": "/n", "container": "", "comm": "hog"}


class Scenario:
    name, group, state, cause, unknown_limit = "x", "GET /item", "runqueue", "neighbour", 0.02
    greetings = 0

    @staticmethod
    def culprit_is(culprit):
        return culprit["cgroup"] == "/n"


def answer(**finding):
    first = {"group": "GET /item", "state": "runqueue", "cause": "neighbour", "via": [],
             "share": 0.7, "extra_ns": 100, "culprit": CULPRIT, **finding}
    return {"groups": [{"name": "GET /item", "count": 100, "unknown_share": 0.01,
                        "slow_count": 5, "mean_slow_ns": 300}],
            "findings": [first], "lost": {"records": 0},
            "slowest": [{"name": "GET /item", "duration_ns": 5, "budget": [{"ns": 5}],
                         "path": [{"start_ns": 0, "end_ns": 5}]}]}


def judge(why):
    share = truth.Share(0.75, 150, 5, 0.05)
    return verdict.judge(Scenario, why, requests([100] * 100), share)


def test_right():
    assert not judge(answer()).wrong


def test_wrong():
    assert "right is runqueue/neighbour" in judge(answer(cause="own")).wrong[0]
    assert "wrong culprit" in judge(answer(culprit={**CULPRIT, "cgroup": "/m"})).wrong[0]
    assert "the witness says 0.75" in judge(answer(share=0.6)).wrong[0]
    assert judge({**answer(), "findings": []}).wrong == ["no finding"]


def test_wrong_numbers():
    why = answer()
    why["groups"][0].update(count=99, unknown_share=0.03)
    why["slowest"][0]["budget"][0]["ns"] = 4
    assert len(judge(why).wrong) == 3
