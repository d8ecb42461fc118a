# SPDX-License-Identifier: MIT
"""Compares why.json with the truth.  Every wrong thing is a sentence; none means right."""

import typing

SHARE_LIMIT = 0.10
CALM_LIMIT = 0.05


class Verdict(typing.NamedTuple):
    wrong: list          # sentences
    unknown: float       # unknown and lost, of the slow requests' time
    share: float | None  # the culprit's, by longpole
    truth: float | None  # the same, by the independent witness
    first: str           # the first finding, in short


def short(finding):
    culprit = finding.get("culprit", {})
    via = ",".join(finding.get("via", []))
    name = culprit.get("name") or culprit.get("cgroup") or culprit.get("comm") or "?"
    return (f"{finding.get('state')}/{finding.get('cause')}{' via ' + via if via else ''} "
            f"{culprit.get('kind', '?')} {name} ({finding.get('group')}, "
            f"share {finding.get('share', 0):.2f})")


def find_group(why, name):
    return next((g for g in why.get("groups", []) if g["name"] == name), None)


def check_paths(why):
    """Sums are exact, or nothing else can be believed."""
    for request in why.get("slowest", []):
        for key in ("budget", "path"):
            total = sum(p["ns"] if key == "budget" else p["end_ns"] - p["start_ns"]
                        for p in request[key])
            if total != request["duration_ns"]:
                yield (f"the {key} of a {request['name']} sums to {total} ns, "
                       f"it took {request['duration_ns']} ns")
                return


def check_counts(why, requests, names, greetings):
    for name in names:
        sent = sum(1 for r in requests if "GET " + r.name == name or not name.startswith("GET "))
        group = find_group(why, name)
        if not group:
            have = ", ".join(g["name"] for g in why.get("groups", [])) or "none"
            yield f"no group '{name}' (there are: {have})"
        elif not sent <= group["count"] <= sent + greetings:
            yield f"{group['count']} requests '{name}' found, {sent} were sent"


def unknown_share(why, names):
    """Unknown and lost, of the time of all slow requests of these groups together."""
    groups = [g for g in why.get("groups", []) if g["name"] in names]
    slow_ns = sum(g["mean_slow_ns"] * g["slow_count"] for g in groups)
    unknown_ns = sum(g["unknown_share"] * g["mean_slow_ns"] * g["slow_count"] for g in groups)
    return unknown_ns / slow_ns if slow_ns else 0.0


def same_culprit(a, b):
    return all(a["culprit"].get(k) == b["culprit"].get(k)
               for k in ("kind", "cgroup", "container", "comm"))


def culprit_share(why, first):
    """Summed over the ways (via) that led to the same culprit."""
    return sum(f["share"] for f in why["findings"]
               if f["group"] == first["group"] and f["state"] == first["state"] and
               f["cause"] == first["cause"] and same_culprit(f, first))


def judge(scenario, why, requests, truth):
    """truth is a truth.Share or None."""
    wrong = list(check_paths(why))
    findings = why.get("findings", [])
    names = scenario.endpoints if scenario.group is None else (scenario.group,)
    unknown = unknown_share(why, names)
    wrong += check_counts(why, requests, names, scenario.greetings)
    first = short(findings[0]) if findings else "none"
    if unknown > scenario.unknown_limit:
        wrong.append(f"unknown and lost are {100 * unknown:.1f} % of the slow requests' time")
    if why.get("lost", {}).get("records"):
        wrong.append(f"{why['lost']['records']} records lost")
    if scenario.group is None:
        return Verdict(wrong + list(judge_calm(findings, requests)), unknown, None, None, first)
    if not findings:
        return Verdict([*wrong, "no finding"], unknown, None, None, first)
    f = findings[0]
    if (f["state"], f["cause"]) != (scenario.state, scenario.cause):
        wrong.append(f"first is {first}, right is {scenario.state}/{scenario.cause}")
    elif not scenario.culprit_is(f["culprit"]):
        wrong.append(f"wrong culprit: {first}")
    if f["group"] != scenario.group:
        wrong.append(f"the first finding is about '{f['group']}'")
    share = culprit_share(why, f)
    if truth and abs(share - truth.share) > SHARE_LIMIT:
        wrong.append(f"share {share:.2f}, the witness says {truth.share:.2f}")
    return Verdict(wrong, unknown, share, truth.share if truth else None, first)


def judge_calm(findings, requests):
    for f in findings:
        of_group = [r.ns for r in requests if "GET " + r.name == f["group"]]
        mean_ns = sum(of_group) / len(of_group) if of_group else 1
        if f["cause"] == "neighbour" and f["extra_ns"] > CALM_LIMIT * mean_ns:
            yield f"nothing disturbed, yet {short(f)} with {f['extra_ns']} ns"
