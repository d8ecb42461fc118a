/* SPDX-License-Identifier: MIT
 *
 * A small, bounded load: a few connections, each a thread that asks, reads the whole answer and
 * waits a random time (half to one and a half GAP) before it asks again.  Extra connections can be
 * added that ask only during bursts.  Each request is logged with the monotonic clock:
 *
 *	ID START FIRST-BYTE END STATUS NAME
 *
 * Speaks HTTP/1.1 with keep-alive, or PostgreSQL's simple query protocol (--pg USER).
 * In a template %i is the request's id, %u(A,B) a whole number from A to B, %p(P,X,Y) is X with
 * probability P and else Y (neither X nor Y may hold a bracket).
 */
#include "work.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER_BYTES	65536
#define TEXT_BYTES	512
#define MAX_URLS	16
#define MAX_CONNECTIONS 256
#define MAX_REQUESTS	400000

struct url {
	const char *template;
	int weight;
};

struct answer {
	int64_t id, start_ns, first_ns, end_ns;
	int status;
	char name[32];
};

struct load {
	int port, connections, burst_connections, n_urls, weights;
	int64_t duration_ns, gap_ns, burst_gap_ns, burst_on_ns, burst_period_ns, start_ns;
	const char *pg_user;
	bool reconnect; /* a connection for each request */
	struct url urls[MAX_URLS];
	atomic_size_t n;
	struct answer *answers;
	atomic_bool failed;
};

struct connection {
	struct load *load;
	uint64_t random;
	int fd;
	bool burst;
	int64_t first_ns; /* when the first byte of the answer came */
	size_t used, at;  /* bytes in the buffer, and those already looked at */
	char buffer[BUFFER_BYTES];
};

/* --- templates */

/* Writes what the %x(...) at text stands for and returns what follows it. */
static const char *expand_call(const char *text, struct connection *c, FILE *out)
{
	const char *end = strchr(text, ')');
	double p;
	int a, b, n;

	if (end && sscanf(text, "%%u(%d,%d)", &a, &b) == 2) {
		fprintf(out, "%d", a + (int)(random_unit(&c->random) * (b - a + 1)));
	} else if (end && sscanf(text, "%%p(%lf,%n", &p, &n) == 1) {
		const char *x = text + n, *comma = strchr(x, ',');

		if (random_unit(&c->random) < p)
			fprintf(out, "%.*s", (int)(comma - x), x);
		else
			fprintf(out, "%.*s", (int)(end - comma - 1), comma + 1);
	} else {
		fprintf(stderr, "load: cannot read the template from '%s' on\n", text);
		exit(2);
	}
	return end + 1;
}

static void expand(const char *template, struct connection *c, int64_t id, char *ret)
{
	FILE *out = fmemopen(ret, TEXT_BYTES, "w");

	while (*template) {
		if (*template != '%') {
			fputc(*template ++, out);
		} else if (template[1] == 'i') {
			fprintf(out, "%lld", (long long)id);
			template += 2;
		} else {
			template = expand_call(template, c, out);
		}
	}
	fputc(0, out);
	fclose(out);
}

static const char *choose(struct connection *c)
{
	int at = (int)(random_unit(&c->random) * c->load->weights), i = 0;

	while (i < c->load->n_urls - 1 && at >= c->load->urls[i].weight)
		at -= c->load->urls[i++].weight;
	return c->load->urls[i].template;
}

/* --- bytes */

static int more(struct connection *c)
{
	ssize_t n;

	if (c->at) {
		memmove(c->buffer, c->buffer + c->at, c->used - c->at);
		c->used -= c->at;
		c->at = 0;
	}
	if (c->used == BUFFER_BYTES - 1)
		return -1;
	n = recv(c->fd, c->buffer + c->used, BUFFER_BYTES - 1 - c->used, 0);
	if (n <= 0)
		return -1;
	if (!c->first_ns)
		c->first_ns = now_ns();
	c->used += (size_t)n;
	c->buffer[c->used] = 0;
	return 0;
}

static int skip(struct connection *c, int64_t n)
{
	while (n > (int64_t)(c->used - c->at)) {
		n -= (int64_t)(c->used - c->at);
		c->at = c->used;
		if (more(c))
			return -1;
	}
	c->at += (size_t)n;
	return 0;
}

/* The line at c->at without its end; it stays valid until the next call. */
static char *line(struct connection *c)
{
	char *end, *ret;

	while (!(end = c->used > c->at ? strstr(c->buffer + c->at, "\r\n") : NULL))
		if (more(c))
			return NULL;
	*end = 0;
	ret = c->buffer + c->at;
	c->at = (size_t)(end + 2 - c->buffer);
	return ret;
}

static int send_all(struct connection *c, const void *data, size_t len)
{
	return send(c->fd, data, len, MSG_NOSIGNAL) == (ssize_t)len ? 0 : -1;
}

/* --- HTTP */

static int http_ask(struct connection *c, const char *path)
{
	char text[TEXT_BYTES + 128];
	int n = snprintf(text, sizeof(text),
			 "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n",
			 path);

	return send_all(c, text, (size_t)n);
}

static int http_chunks(struct connection *c)
{
	for (;;) {
		char *size_line = line(c);
		int64_t size = size_line ? strtoll(size_line, NULL, 16) : -1;

		if (size < 0 || skip(c, size) || !line(c))
			return -1;
		if (!size)
			return 0;
	}
}

static int http_read(struct connection *c, int *ret_status)
{
	int64_t length = -1;
	bool chunked = false;
	char *text = line(c);

	if (!text || sscanf(text, "HTTP/1.1 %d", ret_status) != 1)
		return -1;
	while ((text = line(c)) && *text) {
		if (!strncasecmp(text, "Content-Length:", 15))
			length = atoll(text + 15);
		if (!strncasecmp(text, "Transfer-Encoding: chunked", 26))
			chunked = true;
	}
	if (!text)
		return -1;
	return chunked ? http_chunks(c) : skip(c, length);
}

/* --- PostgreSQL */

static int pg_read(struct connection *c, int *ret_status)
{
	uint32_t length;
	char type = 0;

	*ret_status = 0;
	while (type != 'Z') {
		while (c->used - c->at < 5)
			if (more(c))
				return -1;
		type = c->buffer[c->at];
		memcpy(&length, c->buffer + c->at + 1, 4);
		if (type == 'E')
			*ret_status = 1;
		if (skip(c, (int64_t)ntohl(length) + 1))
			return -1;
	}
	return 0;
}

static int pg_send(struct connection *c, const char *type, const char *body, size_t len)
{
	char message[TEXT_BYTES + 16];
	uint32_t length = htonl((uint32_t)len + 4);
	size_t n = strlen(type);

	memcpy(message, type, n);
	memcpy(message + n, &length, 4);
	memcpy(message + n + 4, body, len);
	return send_all(c, message, n + 4 + len);
}

static int pg_start(struct connection *c)
{
	char body[TEXT_BYTES] = {0, 3, 0, 0};
	int status, n = 4;

	n += sprintf(body + n, "user%c%.60s%cdatabase%cpostgres%c", 0, c->load->pg_user, 0, 0, 0) +
	     1;
	return pg_send(c, "", body, (size_t)n) || pg_read(c, &status) || status;
}

/* --- connections */

static int open_connection(struct connection *c)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)c->load->port)};
	int one = 1;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	c->fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(c->fd, (struct sockaddr *)&a, sizeof(a)))
		return -1;
	return c->load->pg_user ? pg_start(c) : 0;
}

/* The path without its query, or the first word of a statement. */
static void name_of(const char *text, char *ret, size_t size)
{
	snprintf(ret, size, "%.*s", (int)strcspn(text, "? "), text);
}

static int ask(struct connection *c)
{
	struct load *l = c->load;
	size_t id = atomic_fetch_add(&l->n, 1);
	struct answer a = {.id = (int64_t)id};
	char text[TEXT_BYTES];
	int failed;

	if (id >= MAX_REQUESTS)
		return -1;
	expand(choose(c), c, a.id, text);
	name_of(text, a.name, sizeof(a.name));
	if (l->reconnect) {
		close(c->fd);
		c->used = c->at = 0;
		if (open_connection(c))
			return -1;
	}
	c->first_ns = 0;
	a.start_ns = now_ns();
	if (l->pg_user)
		failed = pg_send(c, "Q", text, strlen(text) + 1) || pg_read(c, &a.status);
	else
		failed = http_ask(c, text) || http_read(c, &a.status);
	a.end_ns = now_ns();
	a.first_ns = c->first_ns;
	l->answers[id] = a;
	return failed;
}

/* When to ask next: for a burst connection, not before the next burst. */
static int64_t next_time(struct connection *c, int64_t from_ns)
{
	struct load *l = c->load;
	int64_t gap = c->burst ? l->burst_gap_ns : l->gap_ns, next, phase;

	next = from_ns + (int64_t)((double)gap * (0.5 + random_unit(&c->random)));
	phase = c->burst ? (next - l->start_ns) % l->burst_period_ns : 0;
	if (c->burst && phase < l->burst_period_ns - l->burst_on_ns)
		next += l->burst_period_ns - l->burst_on_ns - phase;
	return next;
}

static void *connection_thread(void *arg)
{
	struct connection *c = arg;
	struct load *l = c->load;
	int64_t next = next_time(c, l->start_ns), now;

	for (; next < l->start_ns + l->duration_ns; next = next_time(c, next > now ? next : now)) {
		sleep_until(next);
		if (ask(c)) {
			fprintf(stderr, "load: a request to port %d failed\n", l->port);
			atomic_store(&l->failed, true);
			break;
		}
		now = now_ns();
	}
	close(c->fd);
	return NULL;
}

/* All are open before the first asks, and the first moment is shared. */
static int run(struct load *l)
{
	static pthread_t threads[MAX_CONNECTIONS];
	static struct connection connections[MAX_CONNECTIONS];
	int n = l->connections + l->burst_connections;

	for (int i = 0; i < n; i++) {
		struct connection *c = &connections[i];

		c->load = l;
		c->random = (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u;
		c->burst = i >= l->connections;
		if (open_connection(c)) {
			fprintf(stderr, "load: cannot open a connection to port %d\n", l->port);
			return 1;
		}
	}
	l->start_ns = now_ns();
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, connection_thread, &connections[i]))
			return 1;
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return atomic_load(&l->failed);
}

static int write_answers(struct load *l, const char *path)
{
	FILE *f = path ? fopen(path, "w") : NULL;
	size_t n = atomic_load(&l->n);

	if (!path)
		return 0;
	if (!f) {
		perror(path);
		return 1;
	}
	for (size_t i = 0; i < n && i < MAX_REQUESTS; i++) {
		struct answer *a = &l->answers[i];

		if (a->end_ns)
			fprintf(f, "%lld %lld %lld %lld %d %s\n", (long long)a->id,
				(long long)a->start_ns, (long long)a->first_ns,
				(long long)a->end_ns, a->status, a->name);
	}
	return fclose(f) ? 1 : 0;
}

static int64_t ms(const char *text)
{
	return (int64_t)(atof(text) * 1e6);
}

static int add_url(struct load *l, char *text)
{
	char *template = strchr(text, ' ');

	if (!template || l->n_urls == MAX_URLS)
		return -1;
	l->urls[l->n_urls++] = (struct url){template + 1, atoi(text)};
	l->weights += atoi(text);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"port", 1, NULL, 'p'},
		{"seconds", 1, NULL, 's'},
		{"connections", 1, NULL, 'c'},
		{"gap", 1, NULL, 'g'},
		{"burst", 1, NULL, 'b'},
		{"burst-gap", 1, NULL, 'G'},
		{"url", 1, NULL, 'u'},
		{"log", 1, NULL, 'o'},
		{"pg", 1, NULL, 'q'},
		{"reconnect", 0, NULL, 'r'},
		{0},
	};
	static struct load l;
	const char *log_path = NULL;
	double on, period;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'p':
			l.port = atoi(optarg);
			break;
		case 's':
			l.duration_ns = ms(optarg) * 1000;
			break;
		case 'c':
			l.connections = atoi(optarg);
			break;
		case 'g':
			l.gap_ns = ms(optarg);
			break;
		case 'G':
			l.burst_gap_ns = ms(optarg);
			break;
		case 'o':
			log_path = optarg;
			break;
		case 'q':
			l.pg_user = optarg;
			break;
		case 'r':
			l.reconnect = true;
			break;
		case 'b': /* CONNECTIONS,ON_MS,PERIOD_MS */
			if (sscanf(optarg, "%d,%lf,%lf", &l.burst_connections, &on, &period) != 3)
				return 2;
			l.burst_on_ns = (int64_t)(on * 1e6);
			l.burst_period_ns = (int64_t)(period * 1e6);
			break;
		case 'u':
			if (!add_url(&l, optarg))
				break;
			/* fall through */
		default:
			return 2;
		}
	}
	l.answers = calloc(MAX_REQUESTS, sizeof(*l.answers));
	if (!l.answers || !l.n_urls || l.connections + l.burst_connections > MAX_CONNECTIONS)
		return 2;
	return run(&l) | write_answers(&l, log_path);
}
