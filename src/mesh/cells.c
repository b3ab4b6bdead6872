/* Cells for output: memory, checks, and how they are made from the grid and from tets. */
#include "mesh/mesh.h"

int32_t un_cell_corners(int32_t type)
{
    switch (type) {
    case UN_CELL_TRIANGLE:
        return 3;
    case UN_CELL_QUAD:
    case UN_CELL_TETRA:
        return 4;
    case UN_CELL_VOXEL:
    case UN_CELL_HEXAHEDRON:
        return 8;
    default:
        return 0;
    }
}

static un_status alloc_cells(un_context *ctx, un_cells *cells, int64_t point_count, int64_t count,
                             int64_t corner_count, bool tagged)
{
    un_status status = UN_OK;
    *cells = (un_cells){0};
    UN_ALLOC_DONE(ctx, cells->point, point_count + 1);
    UN_ALLOC_DONE(ctx, cells->first, count + 1);
    UN_ALLOC_DONE(ctx, cells->corner, corner_count + 1);
    UN_ALLOC_DONE(ctx, cells->type, count + 1);
    UN_ALLOC_DONE(ctx, cells->level, count + 1);
    if (tagged)
        UN_ALLOC_DONE(ctx, cells->tag, count + 1);
    else {
        UN_ALLOC_DONE(ctx, cells->pressure, count + 1);
        UN_ALLOC_DONE(ctx, cells->velocity, count + 1);
    }
    cells->point_count = (int32_t)point_count;
    cells->count = count;
    cells->first[0] = 0;
done:
    if (status != UN_OK) un_cells_free(ctx, cells);
    return status;
}

un_status un_cells_alloc(un_context *ctx, un_cells *cells, int64_t point_count, int64_t count,
                         int64_t corner_count)
{
    return alloc_cells(ctx, cells, point_count, count, corner_count, false);
}

un_status un_cells_alloc_tagged(un_context *ctx, un_cells *cells, int64_t point_count,
                                int64_t count, int64_t corner_count)
{
    return alloc_cells(ctx, cells, point_count, count, corner_count, true);
}

void un_cells_free(un_context *ctx, un_cells *cells)
{
    un_free(ctx, cells->point);
    un_free(ctx, cells->first);
    un_free(ctx, cells->corner);
    un_free(ctx, cells->type);
    un_free(ctx, cells->level);
    un_free(ctx, cells->pressure);
    un_free(ctx, cells->velocity);
    un_free(ctx, cells->tag);
    *cells = (un_cells){0};
}

double un_cells_size(const un_cells *cells, int64_t c)
{
    un_vec3 lo = cells->point[cells->corner[cells->first[c]]], hi = lo;
    for (int32_t k = cells->first[c] + 1; k < cells->first[c + 1]; k++) {
        lo = un_min3(lo, cells->point[cells->corner[k]]);
        hi = un_max3(hi, cells->point[cells->corner[k]]);
    }
    return fmax(hi.x - lo.x, fmax(hi.y - lo.y, hi.z - lo.z));
}

bool un_cells_validate(const un_cells *cells, const char **reason)
{
    *reason = "a point is not a finite number";
    for (int32_t i = 0; i < cells->point_count; i++)
        if (!un_finite3(cells->point[i])) return false;
    if (cells->count > 0 && cells->first[0] != 0) return false;
    for (int64_t c = 0; c < cells->count; c++) {
        int32_t corners = un_cell_corners(cells->type[c]);
        *reason = "a cell is of an unknown type";
        if (corners == 0) return false;
        *reason = "a cell does not have as many corners as its type";
        if ((int64_t)cells->first[c] + corners != cells->first[c + 1]) return false;
        if (cells->first[c + 1] > cells->first[cells->count]) return false;
        *reason = "a corner is not among the points";
        for (int32_t k = cells->first[c]; k < cells->first[c + 1]; k++)
            if (cells->corner[k] < 0 || cells->corner[k] >= cells->point_count) return false;
        *reason = "a cell has no size";
        if (!(un_cells_size(cells, c) > 0)) return false;
    }
    *reason = NULL;
    return true;
}

/* ---- which cells and points are written ---- */

/* Both arrays first hold 1 or 0 and then, by un_parallel_scan, numbers: an item that counts is
 * followed by a greater number. */
typedef struct selection {
    int32_t *cell, *point;
} selection;

static inline bool is_kept(const int32_t *numbers, int64_t i)
{
    return numbers[i + 1] > numbers[i];
}

static un_status selection_alloc(un_arena *arena, selection *s, int64_t cells, int64_t points)
{
    s->cell = un_arena_alloc(arena, (size_t)cells + 1, sizeof *s->cell);
    s->point = un_arena_alloc(arena, (size_t)points + 1, sizeof *s->point);
    if (!s->cell || !s->point) return UN_ERROR_MEMORY;
    s->cell[cells] = s->point[points] = 0;
    return UN_OK;
}

static un_status fail_size(un_context *ctx, int64_t count)
{
    return un_fail(ctx, UN_ERROR_ARGUMENT,
                   "a mesh of %lld cells is too large to write; lower detail.finest or set "
                   "output.mesh = false",
                   (long long)count);
}

static un_status selection_number(un_context *ctx, selection *s, un_cells *out, int64_t cells,
                                  int64_t points, int32_t corners)
{
    int64_t count = un_parallel_scan(ctx, s->cell, cells + 1);
    int64_t point_count = un_parallel_scan(ctx, s->point, points + 1);
    if (count > INT32_MAX / corners) return fail_size(ctx, count);
    return un_cells_alloc(ctx, out, point_count, count, corners * count);
}

/* ---- cubes of the grid, squares in 2D ---- */

typedef struct grid_args {
    const un_grid_cells *in;
    selection select;
    un_cells *out;
} grid_args;

static void select_cubes(void *arg, int64_t begin, int64_t end)
{
    grid_args *a = arg;
    for (int64_t c = begin; c < end; c++)
        a->select.cell[c] = a->in->phi[c] < 0 && a->in->open[c] > 0;
}

/* Marks the nodes of the cells that count, by rows of nodes. */
static void select_nodes(void *arg, int64_t begin, int64_t end)
{
    grid_args *a = arg;
    const un_grid *g = a->in->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % (g->n[1] + 1)), k = (int32_t)(row / (g->n[1] + 1));
        for (int32_t i = 0; i <= g->n[0]; i++) {
            int32_t used = 0;
            for (int s = 0; s < 1 << g->dim && !used; s++) {
                int32_t x = i - (s & 1), y = j - (s >> 1 & 1), z = k - (s >> 2);
                if (x >= 0 && x < g->n[0] && y >= 0 && y < g->n[1] && z >= 0 && z < g->n[2])
                    used = a->select.cell[un_grid_cell(g, x, y, z)];
            }
            a->select.point[un_grid_node(g, i, j, k)] = used;
        }
    }
}

static void place_nodes(void *arg, int64_t begin, int64_t end)
{
    grid_args *a = arg;
    const un_grid *g = a->in->grid;
    for (int64_t row = begin; row < end; row++) {
        int32_t j = (int32_t)(row % (g->n[1] + 1)), k = (int32_t)(row / (g->n[1] + 1));
        for (int32_t i = 0; i <= g->n[0]; i++) {
            int64_t n = un_grid_node(g, i, j, k);
            if (is_kept(a->select.point, n))
                a->out->point[a->select.point[n]] =
                    a->in->warp ? a->in->warp->node[n] : un_grid_node_position(g, i, j, k);
        }
    }
}

static void fill_cubes(void *arg, int64_t begin, int64_t end)
{
    grid_args *a = arg;
    const un_grid *g = a->in->grid;
    double *const *u = a->in->u;
    for (int64_t row = begin; row < end; row++)
        for (int32_t i = 0; i < g->n[0]; i++) {
            int32_t j = (int32_t)(row % g->n[1]), k = (int32_t)(row / g->n[1]);
            int64_t c = un_grid_cell(g, i, j, k);
            if (!is_kept(a->select.cell, c)) continue;
            int32_t to = a->select.cell[c];
            int corners = 1 << g->dim;
            bool cyclic = g->dim == 2 || a->in->warp; /* corners of quads and hexahedra */
            double p = 0;
            for (int n = 0; n < corners; n++) {
                int s = cyclic ? n ^ (n >> 1 & 1) : n;
                if (a->in->warp)
                    p +=
                        a->in
                            ->node_p[un_grid_node(g, i + (s & 1), j + (s >> 1 & 1), k + (s >> 2))] /
                        corners;
                a->out->corner[corners * to + n] =
                    a->select.point[un_grid_node(g, i + (s & 1), j + (s >> 1 & 1), k + (s >> 2))];
            }
            a->out->first[to + 1] = corners * (to + 1);
            a->out->type[to] = g->dim == 2   ? UN_CELL_QUAD
                               : a->in->warp ? UN_CELL_HEXAHEDRON
                                             : UN_CELL_VOXEL;
            a->out->level[to] = 0;
            a->out->pressure[to] =
                a->in->warp ? p : a->in->p[c] + (a->in->more ? a->in->more[c] : 0);
            if (a->in->warp) {
                a->out->velocity[to] = a->in->centre_u[c];
                continue;
            }
            double v[3] = {0};
            for (int b = 0; b < g->dim; b++) v[b] = 0.5 * (u[b][c] + u[b][c + g->stride[b]]);
            a->out->velocity[to] = un_v3(v[0], v[1], v[2]);
        }
}

un_status un_cells_from_grid(un_context *ctx, un_cells *out, const un_grid_cells *in)
{
    const un_grid *g = in->grid;
    int64_t node_rows = g->node_count / (g->n[0] + 1);
    grid_args a = {.in = in, .out = out};
    un_arena arena;
    *out = (un_cells){0};
    un_arena_init(&arena, ctx);
    un_status status = selection_alloc(&arena, &a.select, g->cell_count, g->node_count);
    if (status == UN_OK) {
        un_parallel_for(ctx, g->cell_count, 8192, select_cubes, &a);
        un_parallel_for(ctx, node_rows, 64, select_nodes, &a);
        status = selection_number(ctx, &a.select, out, g->cell_count, g->node_count, 1 << g->dim);
    }
    if (status == UN_OK) {
        un_parallel_for(ctx, node_rows, 64, place_nodes, &a);
        un_parallel_for(ctx, (int64_t)g->n[1] * g->n[2], 64, fill_cubes, &a);
    }
    un_arena_free(&arena);
    return status;
}

/* ---- tets ---- */

typedef struct tets_args {
    const un_tets_cells *in;
    selection select;
    un_cells *out;
    int32_t first_cell, first_point; /* over ranks: before this rank's */
} tets_args;

static double mean4(const float *v, const int32_t n[4])
{
    return 0.25 * ((double)v[n[0]] + (double)v[n[1]] + (double)v[n[2]] + (double)v[n[3]]);
}

static void select_tets(void *arg, int64_t begin, int64_t end)
{
    tets_args *a = arg;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = a->in->mesh->tet[t];
        a->select.cell[t] =
            mean4(a->in->phi, n) < 0 && (!a->in->walls || mean4(a->in->walls, n) > 0);
    }
}

static void select_tet_nodes(void *arg, int64_t begin, int64_t end)
{
    tets_args *a = arg;
    const un_tets *mesh = a->in->mesh;
    for (int64_t n = begin; n < end; n++) {
        int32_t used = 0;
        for (int32_t k = mesh->first[n]; k < mesh->first[n + 1] && !used; k++)
            used = a->select.cell[mesh->corner[k] / 4];
        a->select.point[n] = used;
    }
}

static void place_tet_nodes(void *arg, int64_t begin, int64_t end)
{
    tets_args *a = arg;
    for (int64_t n = begin; n < end; n++)
        if (is_kept(a->select.point, n))
            a->out->point[a->select.point[n] - a->first_point] = a->in->mesh->x[n];
}

static void fill_tets(void *arg, int64_t begin, int64_t end)
{
    tets_args *a = arg;
    const un_tets *mesh = a->in->mesh;
    for (int64_t t = begin; t < end; t++) {
        if (!is_kept(a->select.cell, t)) continue;
        int32_t to = a->select.cell[t] - a->first_cell;
        double p = 0;
        un_vec3 u = {0, 0, 0};
        for (int i = 0; i < 4; i++) {
            int32_t n = mesh->tet[t][i];
            a->out->corner[4 * to + i] = a->select.point[n];
            for (int k = 0; k < a->in->pressure_count; k++) p += 0.25 * a->in->p[k][n];
            u = un_mad(u, a->in->u[n], 0.25);
        }
        a->out->first[to + 1] = 4 * (to + 1);
        a->out->type[to] = UN_CELL_TETRA;
        a->out->level[to] = mesh->level[t];
        a->out->pressure[to] = p;
        a->out->velocity[to] = u;
    }
}

/* ---- tets over ranks ---- */

/* Numbers what a rank has chosen of its own, as on one rank; flags of others are not looked at. */
static un_range number_own(un_context *ctx, int32_t *flag, un_part own)
{
    int64_t count = 0;
    for (int64_t i = own.begin; i < own.end; i++) count += flag[i];
    un_range range = un_ranks_range(ctx, count);
    int64_t next = range.begin;
    for (int64_t i = own.begin; i < own.end; i++) {
        int32_t kept = flag[i];
        flag[i] = (int32_t)next;
        next += kept;
    }
    flag[own.end] = (int32_t)next;
    return range;
}

/* Of the cells and points that ranks have, all go to rank 0. */
static un_status collect_cells(un_context *ctx, un_cells *all, const un_cells *mine, un_range cells,
                               un_range points)
{
    un_status status = UN_OK;
    bool first = un_rank(ctx) == 0;
    *all = (un_cells){0};
    if (first) status = un_cells_alloc(ctx, all, points.total, cells.total, 4 * cells.total);
    UN_TRY(un_ranks_agree(ctx, status));
    struct {
        const void *from;
        void *to;
        size_t size;
        bool point;
    } arrays[] = {{mine->point, all->point, sizeof *all->point, true},
                  {mine->corner, all->corner, 4 * sizeof *all->corner, false},
                  {mine->level, all->level, sizeof *all->level, false},
                  {mine->pressure, all->pressure, sizeof *all->pressure, false},
                  {mine->velocity, all->velocity, sizeof *all->velocity, false}};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        un_range range = arrays[i].point ? points : cells;
        un_ranks_own_window(ctx, range, arrays[i].from, arrays[i].size, 0, range.total,
                            arrays[i].to);
    }
    for (int64_t c = 0; c < all->count; c++) {
        all->first[c + 1] = (int32_t)(4 * (c + 1));
        all->type[c] = UN_CELL_TETRA;
    }
    return UN_OK;
}

static un_status share_nodes(const un_tets_cells *in)
{
    un_field fields[4] = {{"phi", in->phi, NULL, sizeof *in->phi},
                          {"u", in->u, NULL, sizeof *in->u}};
    int32_t count = 2;
    for (int k = 0; k < in->pressure_count; k++)
        fields[count++] = (un_field){"p", in->p[k], NULL, sizeof *in->p[k]};
    return un_tets_share(in->mesh, fields, count);
}

static un_status fill_own(un_context *ctx, tets_args *a, un_arena *arena, un_cells *all)
{
    const un_tets *mesh = a->in->mesh;
    un_part nodes = un_tets_own_nodes(mesh), tets = un_tets_own(mesh);
    UN_TRY(
        un_ranks_agree(ctx, selection_alloc(arena, &a->select, mesh->tet_count, mesh->node_count)));
    UN_TRY(share_nodes(a->in));
    un_parallel_for(ctx, mesh->tet_count, 8192, select_tets, a);
    un_parallel_part(ctx, nodes, 4096, select_tet_nodes, a);
    un_range cells = number_own(ctx, a->select.cell, tets);
    un_range points = number_own(ctx, a->select.point, nodes);
    a->first_cell = (int32_t)cells.begin;
    a->first_point = (int32_t)points.begin;
    if (cells.total > INT32_MAX / 4) return fail_size(ctx, cells.total);
    un_status status = un_cells_alloc(ctx, a->out, points.end - points.begin,
                                      cells.end - cells.begin, 4 * (cells.end - cells.begin));
    UN_TRY(un_ranks_agree(ctx, status));
    un_parallel_part(ctx, nodes, 8192, place_tet_nodes, a);
    un_field field = {"point", a->select.point, NULL, sizeof *a->select.point};
    UN_TRY(un_tets_share(mesh, &field, 1));
    un_parallel_part(ctx, tets, 8192, fill_tets, a);
    return collect_cells(ctx, all, a->out, cells, points);
}

/* A rank fills in its own tets, in which all values are right once ghosts have theirs. */
static un_status from_shared_tets(un_context *ctx, un_cells *out, const un_tets_cells *in)
{
    un_cells mine = {0};
    tets_args a = {.in = in, .out = &mine};
    un_arena arena;
    *out = (un_cells){0};
    un_arena_init(&arena, ctx);
    un_status status = fill_own(ctx, &a, &arena, out);
    un_cells_free(ctx, &mine);
    un_arena_free(&arena);
    return status;
}

un_status un_cells_from_tets(un_context *ctx, un_cells *out, const un_tets_cells *in)
{
    const un_tets *mesh = in->mesh;
    if (mesh->share) return from_shared_tets(ctx, out, in);
    tets_args a = {.in = in, .out = out};
    un_arena arena;
    *out = (un_cells){0};
    un_arena_init(&arena, ctx);
    un_status status = selection_alloc(&arena, &a.select, mesh->tet_count, mesh->node_count);
    if (status == UN_OK) {
        un_parallel_for(ctx, mesh->tet_count, 8192, select_tets, &a);
        un_parallel_for(ctx, mesh->node_count, 4096, select_tet_nodes, &a);
        status = selection_number(ctx, &a.select, out, mesh->tet_count, mesh->node_count, 4);
    }
    if (status == UN_OK) {
        un_parallel_for(ctx, mesh->node_count, 8192, place_tet_nodes, &a);
        un_parallel_for(ctx, mesh->tet_count, 8192, fill_tets, &a);
    }
    un_arena_free(&arena);
    return status;
}
