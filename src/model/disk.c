/* SPDX-License-Identifier: MIT
 *
 * Block requests.  They come when they complete, so of two that overlap the later to complete
 * comes second: a slot is free for a request if its last one had completed when it was submitted.
 */
#include "model/state.h"

#include <stdlib.h>

static struct slots *slots_of(struct model *m, int disk)
{
	while (m->disks.n <= (size_t)disk)
		vec_push(&m->disks, NULL);
	if (!m->disks.at[disk]) {
		m->disks.at[disk] = calloc(1, sizeof(struct slots));
		if (!m->disks.at[disk])
			abort();
	}
	return m->disks.at[disk];
}

int disk_block(struct model *m, const struct event *e, struct err *err)
{
	const struct event_block *b = &e->block;
	int64_t end_ns = b->completed_ns == NO_TIME ? e->ts_ns : b->completed_ns;
	int disk = names_disk(m->names, b->dev);
	struct block x = {
		.start_ns = b->submitted_ns,
		.end_ns = end_ns,
		.disk = disk,
		.id = b->request,
		.issued_ns = b->issued_ns,
		.thread = b->tid ? model_mention(m, b->tid, b->pid) : NO_INDEX,
		.owner = names_cgroup_index(m->names, m->names->blkio_hierarchy, b->owner_cgroup),
		.bytes = b->bytes,
		.sector = b->sector,
		.op = b->op,
		.sync = b->sync,
		.background = b->background,
		.open = b->completed_ns == NO_TIME};
	struct interval iv;

	if (x.start_ns == NO_TIME)
		x.start_ns = b->inserted_ns != NO_TIME ? b->inserted_ns : b->issued_ns;
	if (disk < 0 || x.start_ns == NO_TIME || x.start_ns >= x.end_ns)
		return 0;
	if (x.issued_ns != NO_TIME)
		x.issued_ns = clamp_ns(x.issued_ns, x.start_ns, x.end_ns);
	x.slot = slots_take(slots_of(m, disk), x.start_ns, x.end_ns);
	if (x.slot >= DISK_SLOTS)
		return 0; /* deeper than any device's queue */
	block_put(&x, &iv);
	return model_emit(m, &iv, err);
}
