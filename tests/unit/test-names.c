/* SPDX-License-Identifier: MIT */
#include "events.h"

#include "model/names.h"
#include "model/shapes.h"

#include <errno.h>
#include <sys/socket.h>

#define ID    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SHORT "0123456789ab"

/* One line per shape: the path, the part of it that owns it, the container's name. */
static const struct {
	const char *path, *owner, *container;
} shapes[] = {
	{"/", "/", ""},
	{"/plain/group", "/plain/group", ""},
	{"/system.slice/nginx.service", "/system.slice/nginx.service", ""},
	{"/system.slice/nginx.service/worker", "/system.slice/nginx.service", ""},
	{"/user.slice/user-0.slice/session-3.scope", "/user.slice/user-0.slice/session-3.scope",
	 ""},
	{"/user.slice/user-0.slice/user@0.service/app.slice/x.service",
	 "/user.slice/user-0.slice/user@0.service/app.slice/x.service", ""},
	{"/init.scope", "/init.scope", ""},
	{"/system.slice/docker-" ID ".scope", "/system.slice/docker-" ID ".scope", SHORT},
	{"/system.slice/docker-" ID ".scope/init", "/system.slice/docker-" ID ".scope", SHORT},
	{"/docker/" ID, "/docker/" ID, SHORT},
	{"/docker/" ID "/system.slice/a.service", "/docker/" ID, SHORT},
	{"/docker/buildx", "/docker/buildx", ""},
	{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_34.slice/"
	 "cri-containerd-" ID ".scope",
	 "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_34.slice/"
	 "cri-containerd-" ID ".scope",
	 SHORT},
	{"/kubepods.slice/kubepods-pod12_34.slice/crio-" ID ".scope",
	 "/kubepods.slice/kubepods-pod12_34.slice/crio-" ID ".scope", SHORT},
	{"/kubepods.slice/kubepods-pod12_34.slice/crio-conmon-" ID ".scope",
	 "/kubepods.slice/kubepods-pod12_34.slice/crio-conmon-" ID ".scope", ""},
	{"/kubepods/burstable/pod1234-56/" ID, "/kubepods/burstable/pod1234-56/" ID, SHORT},
	{"/machine.slice/libpod-" ID ".scope/container", "/machine.slice/libpod-" ID ".scope",
	 SHORT},
	{"/machine.slice/libpod-" ID ".scope/libpod-payload-" ID,
	 "/machine.slice/libpod-" ID ".scope/libpod-payload-" ID, SHORT},
	{"/libpod_parent/libpod-" ID, "/libpod_parent/libpod-" ID, SHORT},
	{"/lxc.payload.web", "/lxc.payload.web", "web"},
	{"/lxc.payload.web/system.slice/nginx.service", "/lxc.payload.web", "web"},
	{"/lxc.monitor.web", "/lxc.monitor.web", ""},
	{"/lxc/web/x", "/lxc/web", "web"},
	{"/machine.slice/systemd-nspawn@web.service/payload",
	 "/machine.slice/systemd-nspawn@web.service", "web"},
	{"/machine.slice/machine-my\\x2dbox.scope", "/machine.slice/machine-my\\x2dbox.scope",
	 "my-box"},
	{"/ecs/0123/" ID, "/ecs/0123/" ID, ""},
};

static void path_shapes(void **state)
{
	char name[SHAPE_NAME];

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		size_t len = shape_owner(shapes[i].path, name);

		if (len != strlen(shapes[i].owner) || strcmp(name, shapes[i].container) != 0)
			fail_msg("%s: owner %.*s, container '%s'", shapes[i].path, (int)len,
				 shapes[i].path, name);
	}
	assert_true(shape_is_system("/"));
	assert_true(shape_is_system("/init.scope"));
	assert_false(shape_is_system("/docker/" ID "/init.scope"));
}

static void group_names(void **state)
{
	static const char *const lines[][2] = {
		{"GET / HTTP/1.1", "GET /"},
		{"GET /users/4711/orders?page=2 HTTP/1.1", "GET /users/*/orders"},
		{"GET http://shop:80/users/1#x HTTP/1.1", "GET /users/*"},
		{"GET http://shop HTTP/1.1", "GET /"},
		{"POST /v1/img12/0.5 HTTP/1.1", "POST /v1/img12/*.*"},
		{"DELETE /x/123e4567-e89b-12d3-a456-426614174000 HTTP/1.1", "DELETE /x/*"},
		{"GET /blob/deadbeef01/cafe HTTP/1.1", "GET /blob/*/cafe"},
		{"GET /a%20b/%31 HTTP/1.0", "GET /a%20b/%31"},
		{"OPTIONS * HTTP/1.1", "OPTIONS *"},
		{"GET /cut-off-in-the-mid", "GET /cut-off-in-the-mid"},
		{"GETS / HTTP/1.1", ""},
		{"HTTP/1.1 200 OK", ""},
		{"", ""},
		{"GET", ""},
	};
	char buf[160], small[8];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_string_equal(request_group(lines[i][0], buf, sizeof(buf)), lines[i][1]);
	assert_string_equal(request_group("GET /abcdefgh", small, sizeof(small)), "GET /ab");
}

static void feed_thread(struct bench *b, int64_t ts_ns, enum life what, uint32_t tid, uint64_t v2,
			uint64_t cpu)
{
	struct event e = ev_thread(ts_ns, what, tid, "x");

	e.thread.cgroup_v2 = v2;
	e.thread.cgroup_cpu = cpu;
	bench_feed(b, &e);
}

static void feed_cgroup(struct bench *b, uint32_t hierarchy, uint64_t id, const char *path)
{
	struct event e = {
		.ts_ns = 10, .kind = EVENT_CGROUP, .cgroup = {.id = id, .hierarchy = hierarchy}};

	strcpy(e.cgroup.path, path);
	bench_feed(b, &e);
}

/* Hierarchy 3 has cpu, 4 has blkio; the same ids mean other groups there. */
static struct bench *hybrid(void)
{
	struct bench *b = bench_new(5);

	names_set_hierarchy(b->names, 3, "cpu,cpuacct");
	names_set_hierarchy(b->names, 4, "blkio");
	feed_cgroup(b, 0, 1, "/");
	feed_cgroup(b, 3, 1, "/");
	feed_cgroup(b, 3, 7, "/web.service");
	feed_cgroup(b, 3, 8, "/web.service/sub");
	feed_cgroup(b, 4, 7, "/other");
	feed_cgroup(b, 4, 9, "/web.service");
	feed_thread(b, 20, LIFE_SNAPSHOT, 100, 1, 1);
	feed_thread(b, 20, LIFE_SNAPSHOT, 101, 1, 7);
	feed_thread(b, 30, LIFE_CGROUP, 101, 1, 8);
	return b;
}

static void cgroups(void **state)
{
	struct bench *b = hybrid();
	int thread = bench_thread(b, 101, 20), before, after, blkio;

	(void)state;
	bench_finish(b, 100);
	assert_string_equal(names_cgroup_key(b->names), "cpu"); /* one v2 group, two of cpu */
	before = names_cgroup_of(b->names, thread, 25);
	after = names_cgroup_of(b->names, thread, 30);
	assert_string_equal(names_str(b->names, names_cgroup(b->names, before)->path),
			    "/web.service");
	assert_string_equal(names_str(b->names, names_cgroup(b->names, after)->path),
			    "/web.service/sub");
	assert_int_equal(names_cgroup(b->names, after)->unit, before);
	assert_int_equal(names_cgroup(b->names, before)->unit, before);
	assert_true(names_cgroup(b->names, 0)->is_system);
	blkio = names_cgroup_index(b->names, 4, 9);
	assert_int_equal(names_cgroup_same(b->names, blkio), before);
	blkio = names_cgroup_index(b->names, 4, 7);
	assert_int_equal(names_cgroup_same(b->names, blkio), blkio);
	assert_null(names_cgroup(b->names, names_cgroups(b->names) + 1));
	bench_free(b);
}

/* Threads spread over v2 as much as over cpu: v2 is the key. */
static void key_v2(void **state)
{
	struct bench *b = hybrid();

	(void)state;
	feed_cgroup(b, 0, 50, "/a");
	feed_thread(b, 40, LIFE_CGROUP, 100, 50, 1);
	bench_finish(b, 100);
	assert_string_equal(names_cgroup_key(b->names), "v2");
	bench_free(b);
}

static struct bench *filled(void)
{
	struct bench *b = hybrid();
	struct event e = {.ts_ns = 40,
			  .kind = EVENT_SOCKET,
			  .socket = {.cookie = 1,
				     .family = AF_INET6,
				     .role = ROLE_SERVED,
				     .local_port = 80,
				     .local_addr = {[15] = 1}}};

	bench_feed(b, &e);
	e.socket = (struct event_socket){.cookie = 2,
					 .family = AF_INET,
					 .role = ROLE_CLIENT,
					 .remote_port = 81,
					 .remote_addr = {10, 0, 0, 1}};
	bench_feed(b, &e);
	names_set_disk_name(b->names, 8 << 20, "sda");
	bench_finish(b, 100);
	return b;
}

static void saved_and_loaded(void **state)
{
	struct bench *b = filled();
	struct names *n;
	void *bytes;
	size_t len;
	char buf[80];

	(void)state;
	assert_int_equal(names_save(b->names, &bytes, &len), 0);
	assert_int_equal(names_load(bytes, len, &n, NULL), 0);
	assert_int_equal(names_threads(n), 3);
	assert_int_equal(names_find(n, 101, 50), names_find(b->names, 101, 50));
	assert_int_equal(names_cgroup_of(n, 2, 25), names_cgroup_of(b->names, 2, 25));
	assert_int_equal(names_cgroup_same(n, 5), names_cgroup_same(b->names, 5));
	assert_string_equal(names_comm(n, 1, 50), "x");
	assert_string_equal(names_disk_name(n, 0), "sda");
	assert_string_equal(names_address(n, 0, false, buf, sizeof(buf)), "[::1]:80");
	assert_string_equal(names_address(n, 1, true, buf, sizeof(buf)), "10.0.0.1:81");
	assert_string_equal(names_cgroup_key(n), "cpu");
	names_free(n);
	free(bytes);
	bench_free(b);
}

/* Every byte changed in three ways, and every length: refused or loaded, never outside. */
static void damaged_bytes(void **state)
{
	static const uint8_t flips[] = {0x01, 0x80, 0xff};
	struct bench *b = filled();
	struct names *n;
	uint8_t *bytes, *copy;
	size_t len;

	(void)state;
	assert_int_equal(names_save(b->names, (void **)&bytes, &len), 0);
	for (size_t i = 0; i < 3 * len; i++) {
		copy = malloc(len);
		memcpy(copy, bytes, len);
		copy[i / 3] ^= flips[i % 3];
		if (!names_load(copy, len, &n, NULL)) {
			for (int t = -1; t <= names_threads(n); t++) {
				names_comm(n, t, 25);
				names_cgroup_of(n, t, 25);
				names_leader(n, t, 25);
			}
			names_free(n);
		}
		free(copy);
	}
	for (size_t i = 0; i < len; i++) {
		copy = malloc(i ? i : 1);
		memcpy(copy, bytes, i);
		assert_int_equal(names_load(copy, i, &n, NULL), -EBADMSG);
		free(copy);
	}
	free(bytes);
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(path_shapes),	    cmocka_unit_test(group_names),
		cmocka_unit_test(cgroups),	    cmocka_unit_test(key_v2),
		cmocka_unit_test(saved_and_loaded), cmocka_unit_test(damaged_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
