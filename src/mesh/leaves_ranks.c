/* Leaves over ranks.
 *
 * Every rank has all leaves and what is known at them: they are several times fewer than particles.
 * What takes long is found by each rank at its own leaves, those in its part of the curve, and at
 * the faces that belong to these, and told to all others. */
#include "mesh/mesh.h"

void un_leaf_share_free(un_leaf_share *s)
{
    un_free(s->ctx, s->leaf);
    un_free(s->ctx, s->face);
    *s = (un_leaf_share){.ctx = s->ctx};
}

/* Faces are numbered by leaf. */
static int64_t first_face(const un_leaves *m, int64_t leaf)
{
    int64_t low = 0, high = m->face_count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (m->face_side[middle] / 6 < leaf)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

un_status un_leaf_share_find(un_leaf_share *s, un_leaves *m, const un_tree_share *part)
{
    un_leaf_share_free(s);
    UN_TRY(un_ranks_begins(s->ctx, part->begin, m->count, &s->leaf));
    UN_TRY(un_ranks_begins(s->ctx, first_face(m, part->begin), m->face_count, &s->face));
    m->share = s;
    return UN_OK;
}
