/* Every face of a solid has its own corners. For files and the viewer, corners at the same place
 * whose normals are within about a degree are merged. */
#include "output/output.h"

typedef struct corner {
    float x[3];
    int32_t n[3]; /* in steps of NORMAL_STEP */
} corner;

#define NORMAL_STEP (1 / 60.0f) /* a degree */

static corner corner_of(const un_body_mesh *m, int32_t v)
{
    corner c;
    memcpy(c.x, m->position[v], sizeof c.x);
    for (int a = 0; a < 3; a++)
        c.n[a] = (int32_t)lrintf(fminf(fmaxf(m->normal[v][a], -1), 1) / NORMAL_STEP);
    return c;
}

static uint64_t corner_hash(const corner *c)
{
    uint32_t words[6];
    uint64_t hash = 0;
    memcpy(words, c, sizeof words);
    for (int i = 0; i < 6; i++) hash = un_hash64(hash ^ words[i]);
    return hash;
}

un_status un_body_mesh_weld(un_context *ctx, un_body_mesh *m)
{
    size_t room = 16;
    while (room < 2 * (size_t)m->vertex_count) room *= 2;
    int32_t *table = NULL, *now = NULL, count = 0;
    un_status status = UN_OK;
    UN_ALLOC_DONE(ctx, table, room);
    UN_ALLOC_DONE(ctx, now, m->vertex_count + 1);
    memset(table, -1, room * sizeof *table);
    for (int32_t v = 0; v < m->vertex_count; v++) {
        corner c = corner_of(m, v);
        size_t slot = corner_hash(&c) & (room - 1);
        for (; table[slot] >= 0; slot = (slot + 1) & (room - 1)) {
            corner other = corner_of(m, table[slot]);
            if (memcmp(&c, &other, sizeof c) == 0) break;
        }
        if (table[slot] < 0) {
            memcpy(m->position[count], c.x, sizeof c.x);
            memmove(m->normal[count], m->normal[v], sizeof c.n);
            m->sky[count] = m->sky[v];
            table[slot] = count++;
        }
        now[v] = table[slot];
    }
    m->vertex_count = count;
    for (int32_t t = 0; t < m->triangle_count; t++)
        for (int c = 0; c < 3; c++) m->triangle[t][c] = (uint32_t)now[m->triangle[t][c]];
done:
    un_free(ctx, table);
    un_free(ctx, now);
    return status;
}
