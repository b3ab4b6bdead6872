/* Lists whose length is known only when they are written. */
#ifndef UN_MESH_COLLECT_H
#define UN_MESH_COLLECT_H

#include "base/base.h"

/* Writes the results of the items [begin, end), or only counts them if out is NULL. */
typedef int64_t un_lister(const void *arg, int64_t begin, int64_t end, uint64_t *out);

/* The results of all items, in their order, in an array of the arena with room for `more` after
 * them. */
un_status un_collect(un_context *ctx, un_arena *arena, un_lister *emit, const void *arg,
                     int64_t count, uint64_t **list, int64_t *list_count, int64_t more);

#endif
