/* Tets that conform to the liquid, as cells for output. */
#include "mesh/mesh.h"

typedef struct filling {
    un_cells *cells;
    const un_stuffing_cells *in;
} filling;

static void fill(void *arg, int64_t begin, int64_t end)
{
    filling *f = arg;
    const un_stuffing *m = f->in->mesh;
    for (int64_t t = begin; t < end; t++) {
        f->cells->first[t + 1] = (int32_t)(4 * t + 4);
        memcpy(f->cells->corner + 4 * t, m->tet[t], sizeof m->tet[t]);
        f->cells->type[t] = UN_CELL_TETRA;
        f->cells->level[t] = m->level[t];
        f->cells->pressure[t] = f->in->p[t];
        f->cells->velocity[t] = f->in->u[t];
    }
}

un_status un_cells_from_stuffing(un_context *ctx, un_cells *cells, const un_stuffing_cells *in)
{
    const un_stuffing *m = in->mesh;
    filling f = {cells, in};
    UN_TRY(un_cells_alloc(ctx, cells, m->node_count, m->tet_count, 4 * (int64_t)m->tet_count));
    if (m->node_count > 0) memcpy(cells->point, m->x, (size_t)m->node_count * sizeof *m->x);
    un_parallel_for(ctx, m->tet_count, 4096, fill, &f);
    return UN_OK;
}
