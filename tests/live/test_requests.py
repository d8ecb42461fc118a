# SPDX-License-Identifier: MIT
"""Requests are found exactly: as many as the load generators sent, as long as curl says."""

import json
import re
import statistics
import subprocess

import pytest
import servers
from lab import SYSTEM_CPU, free_port, need

CURL_LIMIT_S = 200e-6


@pytest.fixture(params=["sockets", "calls"])
def sight(request, monkeypatch):
    """In both ways of seeing requests: that of kernels before 6.3 is asked for."""
    if request.param == "calls":
        monkeypatch.setenv("LONGPOLE_WITHOUT", "sock-tracepoints,cast")
    return request.param


def seen_by(why):
    host = json.loads((why.recording / "host.json").read_text())
    return host["recorder"]["requests_by"]


def run(lab, *args):
    """A load generator in its own cgroup, on the other CPU.  Returns what it printed."""
    run.count = getattr(run, "count", 0) + 1
    name = f"load-{run.count}"
    process = lab.start(args, cgroup="load", cpu=SYSTEM_CPU, output=name)
    assert process.wait(30) == 0, lab.tail(name, 20)
    return (lab.dir / f"{name}.out").read_text()


def ab(lab, url, requests, connections, *options):
    said = run(lab, need("ab", "apache2-utils"), "-q", "-n", requests, "-c", connections,
               *options, url)
    assert int(re.search(r"Complete requests: +(\d+)", said).group(1)) == requests
    assert int(re.search(r"Failed requests: +(\d+)", said).group(1)) == 0, said
    return requests


def total(answer):
    return sum(g["count"] for g in answer["groups"])


def test_nginx_keepalive_ab(lab, why, sight):
    """24 connections on one event loop."""
    _, port = servers.nginx(lab)
    servers.write_text(lab.dir / "www" / "page.txt", 2000)
    with why(2.5) as answer:
        sent = ab(lab, f"http://127.0.0.1:{port}/page.txt", 4000, 24, "-k")
    assert answer.group("GET /page.txt")["count"] == sent
    assert answer.json["lost"]["records"] == 0
    assert seen_by(answer) == sight


def test_nginx_keepalive_wrk(lab, why):
    """wrk stops with requests under way, so nginx's own access log is the reference."""
    log = lab.dir / "access.log"
    _, port = servers.nginx(lab, f"access_log {log};")
    servers.write_text(lab.dir / "www" / "page.txt", 2000)
    wrk = need("wrk", "wrk")
    with why(3) as answer:
        run(lab, wrk, "-t", "1", "-c", "20", "-d", "1s", f"http://127.0.0.1:{port}/page.txt")
    served = sum('"GET /page.txt' in line for line in log.read_text().splitlines())
    # The answers to what wrk no longer read may fail in nginx, and then are in its log or not.
    assert abs(answer.group("GET /page.txt")["count"] - served) <= 20
    assert answer.group("GET /page.txt")["count"] > 1000


@pytest.mark.usefixtures("sight")
def test_apache_ab(lab, why):
    _, port = servers.apache(lab, workers=10)
    servers.write_text(lab.dir / "www" / "page.txt", 3000)
    with why(3) as answer:
        sent = ab(lab, f"http://127.0.0.1:{port}/page.txt", 1500, 8, "-k")
        sent += ab(lab, f"http://127.0.0.1:{port}/page.txt", 200, 4)
    assert answer.group("GET /page.txt")["count"] == sent


@pytest.mark.usefixtures("sight")
def test_thread_per_connection(lab, why):
    """python's http.server: one thread for each connection, one request on each."""
    port = free_port()
    servers.write_text(lab.dir / "page.txt", 1000)
    server = lab.start(["/usr/bin/python3", "-m", "http.server", "--bind", "127.0.0.1",
                        "-d", lab.dir, port], cgroup="service", cpu=1, output="http.server")
    lab.wait_port(port, server)
    with why(3) as answer:
        sent = ab(lab, f"http://127.0.0.1:{port}/page.txt", 400, 8)
    assert answer.group("GET /page.txt")["count"] == sent


@pytest.mark.usefixtures("sight")
def test_names(lab, why):
    """Without the query, and with a star for what differs from one to the next."""
    _, port = servers.service(lab, "service")
    url = f"http://127.0.0.1:{port}"
    with why(2) as answer:
        run(lab, need("curl", "curl"), "-s", "-o", "/dev/null",
            f"{url}/user/[1-20]?token=secret&cpu=100",
            "-o", "/dev/null", f"{url}/blob/6f9619ff-8b86-d011-b42d-00c04fc964ff")
    assert answer.group("GET /user/*")["count"] == 20
    assert answer.group("GET /blob/*")["count"] == 1
    assert "secret" not in (lab.dir / "why.json").read_text()


@pytest.mark.usefixtures("sight")
def test_durations_against_curl(lab, why):
    """The median over 150 requests of 2 ms on one connection; the answer is a single send."""
    _, port = servers.service(lab, "service")
    with why(3) as answer:
        said = run(lab, need("curl", "curl"), "-s", "-o", "/dev/null", "-w",
                   "%{time_pretransfer} %{time_starttransfer}\n",
                   f"http://127.0.0.1:{port}/page?cpu=2000&n=[1-150]")
    times = [tuple(map(float, line.split())) for line in said.split("\n") if line]
    curl_s = statistics.median(first - before for before, first in times)
    group = answer.group("GET /page")
    assert group["count"] == 150
    assert abs(group["p50_ns"] / 1e9 - curl_s) < CURL_LIMIT_S


@pytest.mark.usefixtures("sight")
def test_proxy_requests_are_part_of_their_caller(lab, why):
    """nginx asks a second service for each request: as many again, but none of them ranked."""
    _, backend = servers.service(lab, "backend")
    http, server = servers.proxy(backend)
    _, port = servers.nginx(lab, server, http)
    with why(3) as answer:
        sent = ab(lab, f"http://127.0.0.1:{port}/item?cpu=100", 1500, 20, "-k")
    assert answer.group("GET /item")["count"] == sent
    assert total(answer.json) == sent


@pytest.mark.usefixtures("sight")
def test_proxy_over_a_unix_socket(lab, why):
    """nginx asks a second nginx over a UNIX socket: part of its caller, which waits for it."""
    path = lab.dir / "inner"
    http = f"server {{ listen unix:{path}; root {lab.dir / 'www'}; access_log off; }}"
    _, port = servers.nginx(lab, f"location /inner/ {{ proxy_pass http://unix:{path}:/; }}", http)
    servers.write_text(lab.dir / "www" / "page.txt", 2000)
    with why(3) as answer:
        sent = ab(lab, f"http://127.0.0.1:{port}/inner/page.txt", 600, 8, "-k")
    group = answer.group("GET /inner/page.txt")
    assert group["count"] == sent
    assert total(answer.json) == sent
    assert group["unknown_share"] < 0.02


def test_command_without_requests(lab):
    """A program that serves nothing is explained itself; longpole's status is its own."""
    done = subprocess.run(["build/longpole", "why", "--json", "--", "sleep", "0.3"],
                          cwd=servers.TOOLS.parents[1], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert '"state":"sleep"' in done.stdout.replace(" ", "")
