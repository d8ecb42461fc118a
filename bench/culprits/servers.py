# SPDX-License-Identifier: MIT
"""The servers of the scenarios, each with a configuration and a folder of its own."""

import os
import pathlib
import pwd
import random
import shutil
import subprocess

from lab import SERVICE_CPU, TOOLS, Failed, free_port, need


def service(lab, name, *options, cgroup=None, cpu=SERVICE_CPU, port=None):
    """service.c; its log is LAB/NAME.log.  Returns (process, port)."""
    port = port or free_port()
    process = lab.start([TOOLS / "service", "--port", port, "--name", name,
                         "--log", lab.dir / f"{name}.log", *options],
                        cgroup=cgroup or name, cpu=cpu, output=name)
    lab.wait_port(port, process)
    return process, port


# --- nginx

NGINX = """\
daemon off;
worker_processes {workers};
error_log stderr warn;
pid {dir}/nginx.pid;
{user}
events {{ worker_connections 512; }}
http {{
	access_log off;
	types {{ text/plain txt; }}
	default_type text/plain;
	keepalive_requests 1000000;
	tcp_nodelay on;
	client_body_temp_path {dir}/ng-body;
	proxy_temp_path {dir}/ng-proxy;
	fastcgi_temp_path {dir}/ng-fastcgi;
	uwsgi_temp_path {dir}/ng-uwsgi;
	scgi_temp_path {dir}/ng-scgi;
	{http}
	server {{
		listen 127.0.0.1:{port};
		root {dir}/www;
		{server}
	}}
}}
"""


def nginx(lab, server="", http="", workers=1, cgroup="service", cpu=SERVICE_CPU, port=None):
    program = need("nginx", "nginx-light")
    port = port or free_port()
    user = "" if os.geteuid() else "user root;"
    (lab.dir / "www").mkdir(exist_ok=True)
    conf = lab.dir / "nginx.conf"
    conf.write_text(NGINX.format(dir=lab.dir, user=user, port=port, server=server, http=http,
                                 workers=workers))
    process = lab.start([program, "-c", conf, "-p", lab.dir], cgroup=cgroup, cpu=cpu)
    lab.wait_port(port, process)
    return process, port


def proxy(port):
    """(http, server) parts of a configuration that passes everything on, with keep-alive."""
    http = f"upstream backend {{ server 127.0.0.1:{port}; keepalive 64; }}"
    server = ("location / { proxy_pass http://backend; proxy_http_version 1.1; "
              'proxy_set_header Connection ""; proxy_buffering on; }')
    return http, server


def write_text(path, size_bytes, seed=1):
    """A file of words, so that compressing it takes time in proportion to its size."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("etaoinshrdlucmfwyp", k=rng.randint(2, 9))) for _ in range(3000)]
    text, have = [], 0
    while have < size_bytes:
        text.append(rng.choice(words))
        have += len(text[-1]) + 1
    path.write_text(" ".join(text)[:size_bytes])


# --- PostgreSQL

POSTGRES = """\
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = ''
shared_buffers = 32MB
max_connections = 50
autovacuum = off
jit = off
max_parallel_workers_per_gather = 0
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
logging_collector = off
"""


def postgres(lab, settings="", data=None, cgroup="service", cpu=SERVICE_CPU):
    """A cluster of its own, made by initdb; the user is postgres, authentication is trust."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    initdb = str(found[-1]) if found else need("initdb", "postgresql")
    entry = pwd.getpwnam("postgres")
    data = data or lab.dir / "pg"
    data.mkdir()
    os.chown(data, entry.pw_uid, entry.pw_gid)
    lab.stack.callback(shutil.rmtree, data, ignore_errors=True)
    made = lab.start([initdb, "-D", data, "-A", "trust", "-N", "--no-locale", "-E", "UTF8",
                      "-U", "postgres"], user="postgres", cgroup=cgroup)
    if made.wait(60):
        raise Failed("initdb failed: " + lab.tail("initdb"))
    port = free_port()
    with open(data / "postgresql.conf", "a", encoding="utf-8") as conf:
        conf.write(POSTGRES.format(port=port) + settings)
    process = lab.start([pathlib.Path(initdb).with_name("postgres"), "-D", data],
                        user="postgres", cgroup=cgroup, cpu=cpu)
    lab.wait_port(port, process, 20)
    return process, port


def sql(lab, port, text):
    psql = need("psql", "postgresql-client")
    done = subprocess.run([psql, "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-q",
                           "-v", "ON_ERROR_STOP=1", "-c", text], cwd=lab.dir,
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed("psql: " + done.stderr.strip())


# --- Apache

APACHE = """\
ServerRoot {dir}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {dir}/apache.pid
ErrorLog {dir}/apache.log
LogLevel warn
Mutex pthread
{modules}
User {user}
Group {group}
StartServers {workers}
MinSpareServers {workers}
MaxSpareServers {workers}
MaxRequestWorkers {workers}
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 30
DocumentRoot {dir}/www
<Directory {dir}>
	Require all granted
	AllowOverride None
</Directory>
{extra}
"""
APACHE_MODULES = ("mpm_prefork", "authz_core", "alias", "cgi", "env")


def apache(lab, extra="", workers=8, cgroup="service", cpu=SERVICE_CPU, modules=APACHE_MODULES):
    program = need("apache2", "apache2")
    port = free_port()
    where = pathlib.Path("/usr/lib/apache2/modules")
    load = "\n".join(f"LoadModule {m}_module {where}/mod_{m}.so" for m in modules
                     if (where / f"mod_{m}.so").exists())
    (lab.dir / "www").mkdir(exist_ok=True)
    conf = lab.dir / "apache.conf"
    conf.write_text(APACHE.format(dir=lab.dir, port=port, modules=load, user="www-data",
                                  group="www-data", workers=workers, extra=extra))
    process = lab.start([program, "-f", conf, "-DFOREGROUND"], cgroup=cgroup, cpu=cpu)
    lab.wait_port(port, process)
    return process, port


def cgi(lab, name):
    """The CGI program under the name it is to have in a report.  Returns Apache's configuration;
    the program's own log is LAB/NAME.log."""
    folder = lab.dir / "cgi-bin"
    folder.mkdir()
    shutil.copy(TOOLS / "cgi", folder / name)
    log = lab.dir / f"{name}.log"
    log.touch()
    log.chmod(0o666)
    return f"ScriptAlias /cgi/ {folder}/\nSetEnv LOG {log}\n"
