/* SPDX-License-Identifier: MIT
 *
 * A CGI program: computes cpu=US of its query and answers.  Its own CPU time, from fork on, goes
 * to the file named by LOG with the id of the query: one line, appended in one write.
 */
#include "work.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static long long query_number(const char *query, const char *key)
{
	const char *at = strstr(query, key);

	return at ? atoll(at + strlen(key)) : 0;
}

int main(void)
{
	const char *query = getenv("QUERY_STRING"), *log = getenv("LOG");
	int64_t start = now_ns(), cpu;
	char line[128];
	int fd, n;

	if (!query)
		return 2;
	burn_us(query_number(query, "cpu="));
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	n = snprintf(line, sizeof(line), "%lld cpu %lld %lld\n", query_number(query, "id="),
		     (long long)start, (long long)(start + cpu));
	fd = log ? open(log, O_WRONLY | O_APPEND) : -1;
	if (fd >= 0 && write(fd, line, (size_t)n) != n)
		return 1;
	printf("Content-Type: text/plain\r\nContent-Length: 6\r\n\r\nready\n");
	return 0;
}
