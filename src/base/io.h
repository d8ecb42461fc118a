/* SPDX-License-Identifier: MIT
 *
 * io.h - whole reads and writes, small files, and a file that is written whole or not at all.
 *
 * Writes go through `struct io`, a table of calls, so that tests can give it a disk that
 * fills up; io_real is the kernel's.
 */
#ifndef BASE_IO_H
#define BASE_IO_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct str;

struct io {
	ssize_t (*pwrite)(int fd, const void *data, size_t len, off_t at);
	ssize_t (*pread)(int fd, void *data, size_t len, off_t at);
};
extern const struct io io_real;

/* All of it, or a negative errno.  pread gives the bytes read, short only at end of file. */
int io_pwrite_all(const struct io *io, int fd, const void *data, size_t len, off_t at);
ssize_t io_pread_all(const struct io *io, int fd, void *data, size_t len, off_t at);
/* The whole file (at most limit bytes, -EFBIG beyond), NUL-terminated; the caller frees *ret.
 * Never waits: a fifo is no file. */
int io_read_file(const char *path, size_t limit, char **ret, size_t *ret_len, struct err *err);
/* Allows as many open files as the system lets this process have: one or two a CPU are needed. */
void io_many_files(void);
/* Writes PATH.tmp and renames it over path. */
int io_write_file(const char *path, const void *data, size_t len, unsigned mode, struct err *err);

#endif
