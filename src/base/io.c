/* SPDX-License-Identifier: MIT */
#include "base/io.h"

#include "base/err.h"
#include "base/scoped.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

const struct io io_real = {.pwrite = pwrite, .pread = pread};

int io_pwrite_all(const struct io *io, int fd, const void *data, size_t len, off_t at)
{
	const char *p = data;

	while (len) {
		ssize_t n = io->pwrite(fd, p, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0) /* takes nothing and gives no reason: treat as full */
			return -ENOSPC;
		p += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

ssize_t io_pread_all(const struct io *io, int fd, void *data, size_t len, off_t at)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = io->pread(fd, (char *)data + done, len - done, at + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* read until the end: files in /proc have no size. */
static int read_to_end(int fd, size_t limit, struct str *text)
{
	char chunk[16 * 1024];

	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		if ((size_t)n > limit - text->len)
			return -EFBIG;
		str_add_bytes(text, chunk, (size_t)n);
	}
}

int io_read_file(const char *path, size_t limit, char **ret, size_t *ret_len, struct err *err)
{
	scoped(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	scoped(str_fini) struct str text = {0};
	struct stat st;
	int rc;

	if (fd < 0 || fstat(fd, &st))
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))
		return err_set(err, -EINVAL, "%s: not a file", path);
	rc = read_to_end(fd, limit, &text);
	if (rc == -EFBIG)
		return err_set(err, rc, "%s: larger than %zu bytes", path, limit);
	if (rc < 0)
		return err_set(err, rc, "%s: %s", path, strerror(-rc));
	if (ret_len)
		*ret_len = text.len;
	*ret = str_take(&text);
	return 0;
}

void io_many_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur == files.rlim_max)
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

static int write_and_close(int fd, const void *data, size_t len)
{
	int rc = io_pwrite_all(&io_real, fd, data, len, 0);

	if (!rc && fsync(fd) && errno != EINVAL)
		rc = -errno;
	if (close(fd) && !rc)
		rc = -errno;
	return rc;
}

int io_write_file(const char *path, const void *data, size_t len, unsigned mode, struct err *err)
{
	scoped(str_fini) struct str tmp = {0};
	int fd, rc;

	str_addf(&tmp, "%s.tmp", path);
	fd = open(tmp.buf, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	if (fd < 0)
		return err_set(err, -errno, "%s: %s", tmp.buf, strerror(errno));
	rc = write_and_close(fd, data, len);
	if (!rc && rename(tmp.buf, path))
		rc = -errno;
	if (!rc)
		return 0;
	unlink(tmp.buf);
	return err_set(err, rc, "%s: %s", path, strerror(-rc));
}
