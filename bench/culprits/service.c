/* SPDX-License-Identifier: MIT
 *
 * A small HTTP/1.1 service whose requests say what they cost:
 *
 *	GET /item?id=7&cpu=900&lock=50&sleep=0&read=4&size=2000
 *
 * computes 900 us, takes the mutex and computes 50 us under it, sleeps, reads 4 random blocks past
 * the page cache, and answers 2000 bytes.  Every step is logged with the request's id and the
 * monotonic clock (work.h), which makes the service a witness of its own.
 *
 *	threads   one thread per connection (default)
 *	loop      one thread, epoll, and requests served one after the other: a long one holds up all
 *
 * With --hold ON,PERIOD (us) a thread named "compactor" holds the mutex ON of every PERIOD and
 * computes meanwhile.
 */
#define _GNU_SOURCE /* O_DIRECT */
#include "work.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_BYTES   4096
#define REQUEST_BYTES 4096
#define BODY_BYTES    (1 << 20)

struct service {
	struct work_log log;
	pthread_mutex_t mutex;
	int64_t hold_us, period_us;
	int data_fd, listen_fd;
	int64_t data_blocks;
	char *body;
};

struct connection {
	struct service *service;
	uint64_t random;
	int fd, used;
	char in[REQUEST_BYTES];
};

/* --- what a request asks for */

static int64_t query_number(const char *request, const char *key, int64_t otherwise)
{
	const char *line_end = strstr(request, "\r\n");
	const char *at = strchr(request, '?');
	size_t len = strlen(key);

	for (; at && at < line_end; at = strchr(at, '&')) {
		at++;
		if (!strncmp(at, key, len) && at[len] == '=')
			return strtoll(at + len + 1, NULL, 10);
	}
	return otherwise;
}

static void take_mutex(struct service *s, int64_t id, int64_t cpu_us)
{
	int64_t start = now_ns(), got;

	pthread_mutex_lock(&s->mutex);
	got = now_ns();
	burn_us(cpu_us);
	pthread_mutex_unlock(&s->mutex);
	log_add(&s->log, id, "lockwait", start, got);
}

static void read_blocks(struct connection *c, int64_t id, int64_t n)
{
	struct service *s = c->service;
	_Alignas(BLOCK_BYTES) char block[BLOCK_BYTES];

	for (; n > 0 && s->data_fd >= 0; n--) {
		off_t at =
			(off_t)(random_next(&c->random) % (uint64_t)s->data_blocks) * BLOCK_BYTES;
		int64_t start = now_ns();

		if (pread(s->data_fd, block, BLOCK_BYTES, at) != BLOCK_BYTES)
			perror("read");
		log_add(&s->log, id, "read", start, now_ns());
	}
}

static int write_all(int fd, const char *data, size_t len)
{
	for (ssize_t n; len; data += n, len -= (size_t)n) {
		n = send(fd, data, len, MSG_NOSIGNAL);
		if (n < 0)
			return -1;
	}
	return 0;
}

static int answer(struct connection *c, int64_t size_bytes)
{
	char head[160];
	int n;

	if (size_bytes > BODY_BYTES)
		size_bytes = BODY_BYTES;
	n = snprintf(head, sizeof(head),
		     "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %lld\r\n\r\n",
		     (long long)size_bytes);
	if (send(c->fd, head, (size_t)n, MSG_NOSIGNAL | (size_bytes ? MSG_MORE : 0)) != n)
		return -1;
	return write_all(c->fd, c->service->body, (size_t)size_bytes);
}

static int serve(struct connection *c, const char *request)
{
	int64_t start = now_ns(), cpu_start = clock_ns(CLOCK_THREAD_CPUTIME_ID), sleep_us, cpu;
	struct service *s = c->service;
	int64_t id = query_number(request, "id", -1), lock_us = query_number(request, "lock", -1);
	bool report = !strncmp(request, "GET /report", 11);
	int failed;

	burn_us(query_number(request, "cpu", 0));
	if (lock_us >= 0)
		take_mutex(s, id, lock_us);
	sleep_us = query_number(request, "sleep", 0);
	if (sleep_us > 0) {
		int64_t from = now_ns();

		sleep_until(from + sleep_us * 1000);
		log_add(&s->log, id, "sleep", from, now_ns());
	}
	read_blocks(c, id, query_number(request, "read", 0));
	failed = answer(c, query_number(request, "size", 100));
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_start;
	log_add(&s->log, id, report ? "report" : "serve", start, now_ns());
	log_add(&s->log, id, "cpu", start, start + cpu);
	return failed;
}

/* --- connections */

/* Serves every whole request that has arrived.  0: more may come, -1: the connection is done. */
static int serve_arrived(struct connection *c)
{
	ssize_t n = recv(c->fd, c->in + c->used, (size_t)(REQUEST_BYTES - 1 - c->used), 0);
	char *end;

	if (n <= 0)
		return -1;
	c->used += (int)n;
	c->in[c->used] = 0;
	while ((end = strstr(c->in, "\r\n\r\n"))) {
		if (serve(c, c->in))
			return -1;
		c->used -= (int)(end + 4 - c->in);
		memmove(c->in, end + 4, (size_t)c->used + 1);
	}
	return c->used < REQUEST_BYTES - 1 ? 0 : -1;
}

static struct connection *accept_one(struct service *s)
{
	struct connection *c = calloc(1, sizeof(*c));
	int one = 1;

	if (!c)
		abort();
	c->service = s;
	c->fd = accept(s->listen_fd, NULL, NULL);
	c->random = (uint64_t)now_ns() | 1;
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return c;
}

static void close_connection(struct connection *c)
{
	close(c->fd);
	free(c);
}

static void *connection_thread(void *arg)
{
	struct connection *c = arg;

	while (!serve_arrived(c))
		;
	close_connection(c);
	return NULL;
}

static void *accept_threads(void *arg)
{
	for (;;) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, connection_thread, accept_one(arg)))
			abort();
		pthread_detach(thread);
	}
	return NULL;
}

static void watch(int epoll_fd, int fd, void *ptr)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = ptr};

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event))
		perror("epoll_ctl");
}

static void *accept_loop(void *arg)
{
	struct service *s = arg;
	int epoll_fd = epoll_create1(0);

	watch(epoll_fd, s->listen_fd, NULL);
	for (;;) {
		struct epoll_event events[64];
		int n = epoll_wait(epoll_fd, events, 64, -1);

		for (int i = 0; i < n; i++) {
			struct connection *c = events[i].data.ptr;

			if (!c) {
				c = accept_one(s);
				watch(epoll_fd, c->fd, c);
			} else if (serve_arrived(c)) {
				close_connection(c);
			}
		}
	}
	return NULL;
}

/* --- the thread that holds the mutex */

static void *compactor(void *arg)
{
	uint64_t random = 88172645463325252u;
	struct service *s = arg;

	prctl(PR_SET_NAME, "compactor");
	for (;;) {
		int64_t idle_us = s->period_us - s->hold_us, start;

		sleep_until(now_ns() +
			    (int64_t)((double)idle_us * 1000 * (0.7 + 0.6 * random_unit(&random))));
		pthread_mutex_lock(&s->mutex);
		start = now_ns();
		burn_us(s->hold_us);
		log_add(&s->log, -1, "hold", start, now_ns());
		pthread_mutex_unlock(&s->mutex);
	}
	return NULL;
}

/* --- start */

static int listen_on(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 128)) {
		perror("listen");
		exit(1);
	}
	return fd;
}

static void open_data(struct service *s, const char *path)
{
	struct stat st;

	s->data_fd = open(path, O_RDONLY | O_DIRECT);
	if (s->data_fd < 0 || fstat(s->data_fd, &st) || st.st_size < BLOCK_BYTES) {
		perror(path);
		exit(1);
	}
	s->data_blocks = st.st_size / BLOCK_BYTES;
}

/* Words, not one letter: nginx's gzip must have something to do with it. */
static char *make_body(void)
{
	char *body = malloc(BODY_BYTES);
	uint64_t random = 0x9e3779b97f4a7c15u;

	for (int i = 0; body && i < BODY_BYTES; i++)
		body[i] = (char)("etaoin shrdlu cmfwyp"[random_next(&random) % 20]);
	return body;
}

static void start_thread(void *(*fn)(void *), struct service *s)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fn, s)) {
		perror("thread");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"port", 1, NULL, 'p'},
		{"loop", 0, NULL, 'l'},
		{"name", 1, NULL, 'n'},
		{"log", 1, NULL, 'o'},
		{"data", 1, NULL, 'd'},
		{"hold", 1, NULL, 'h'},
		{0},
	};
	static struct service s = {.mutex = PTHREAD_MUTEX_INITIALIZER, .data_fd = -1};
	void *(*server)(void *) = accept_threads;
	const char *log_path = NULL;
	long long hold_us, period_us;
	sigset_t signals;
	int c, got;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'p')
			s.listen_fd = listen_on(atoi(optarg));
		else if (c == 'l')
			server = accept_loop;
		else if (c == 'n')
			prctl(PR_SET_NAME, optarg);
		else if (c == 'o')
			log_path = optarg;
		else if (c == 'd')
			open_data(&s, optarg);
		else if (c == 'h' && sscanf(optarg, "%lld,%lld", &hold_us, &period_us) == 2)
			s.hold_us = hold_us, s.period_us = period_us;
		else
			return 2;
	}
	log_init(&s.log, 1 << 18);
	s.body = make_body();
	if (!s.body || !s.listen_fd)
		return 2;
	signals_block(&signals);
	if (s.hold_us)
		start_thread(compactor, &s);
	start_thread(server, &s);
	sigwait(&signals, &got);
	return log_write(&s.log, log_path);
}
