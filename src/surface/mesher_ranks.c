/* The output surface of method `uniform`, made by several ranks.
 *
 * A rank has the rows of lattice nodes that lie in its rows of cells. It samples these and some
 * rows around them, from its own particles and those of other ranks that matter there: particles
 * near the surface only, asked for cell by cell. What adds up does so in the order of one rank. It
 * contours its rows, whose vertices have the numbers of one rank, and rank 0 gets the mesh.
 *
 * Rank 0 fairs it. For velocities, and what moves vertices, each goes to the rank that has the
 * particles around it. Volumes of pieces are rank 0's, too (mesher_rank0.c). */
#include "surface/mesher.h"

#include "particles/particles.h"

/* ---- who has which rows ---- */

static int64_t cell_row(const un_grid *g, int64_t cell)
{
    return cell / g->stride[1];
}

static int32_t owner_of_cell(const un_mesher_region *r, int64_t c)
{
    const un_grid *g = r->in->grid;
    const un_bins *b = r->in->bins;
    int32_t i = (int32_t)(c % g->n[0]), j = (int32_t)(c / g->n[0] % g->n[1]);
    int32_t k = (int32_t)(c / g->stride[2]);
    return r->owner[i / UN_BLOCK + b->blocks[0] * (j / UN_BLOCK + b->blocks[1] * (k / UN_BLOCK))];
}

int32_t un_mesher_owner(const un_mesher_region *r, un_vec3 x)
{
    return owner_of_cell(r, un_grid_cell_at(r->in->grid, x));
}

static un_vec3 row_position(const un_mesher_region *r, int64_t row)
{
    const un_lattice *l = &r->lattice;
    return un_v3(l->origin.x, l->origin.y + (double)(row % l->n[1]) * l->h[1],
                 l->origin.z + (double)(row / l->n[1]) * l->h[2]);
}

/* Adds marks one row around those that are at least `from`; `other` has room for all. */
static void widen(uint8_t *mark, uint8_t *other, int32_t n1, int32_t n2, uint8_t from, uint8_t to)
{
    memcpy(other, mark, (size_t)n1 * (size_t)n2);
    for (int32_t k = 0; k < n2; k++)
        for (int32_t j = 0; j < n1; j++) {
            if (other[j + (int64_t)n1 * k] < from) continue;
            for (int32_t c = k > 0 ? k - 1 : 0; c <= k + 1 && c < n2; c++)
                for (int32_t b = j > 0 ? j - 1 : 0; b <= j + 1 && b < n1; b++)
                    if (mark[b + (int64_t)n1 * c] < to) mark[b + (int64_t)n1 * c] = to;
        }
}

/* Nodes around the particles of own rows of cells. */
static void mark_around_cells(un_mesher_region *r)
{
    const un_grid *g = r->in->grid;
    const un_lattice *l = &r->lattice;
    const double origin[3] = {g->origin.x, g->origin.y, g->origin.z}, hair = 1e-6;
    for (int64_t row = 0; row < (int64_t)g->n[1] * g->n[2]; row++) {
        if (owner_of_cell(r, row * g->n[0]) != un_rank(r->ctx)) continue;
        int64_t at[3] = {0, row % g->n[1], row / g->n[1]};
        int32_t lo[3], hi[3];
        for (int a = 1; a < 3; a++) {
            double low = (origin[a] + g->h * (double)at[a]) / l->h[a];
            double high = (origin[a] + g->h * (double)(at[a] + 1)) / l->h[a];
            lo[a] = un_clampi((int32_t)floor(low - hair), 0, l->n[a] - 1);
            hi[a] = un_clampi((int32_t)ceil(high + hair), 0, l->n[a] - 1);
        }
        for (int32_t k = lo[2]; k <= hi[2]; k++)
            for (int32_t j = lo[1]; j <= hi[1]; j++) {
                uint8_t *mark = &r->nodes[j + (int64_t)l->n[1] * k];
                if (*mark < UN_NODES_SAMPLED) *mark = UN_NODES_SAMPLED;
            }
    }
}

/* Rows that sides wet by (mesher_lattice.c), half a cell. */
static int32_t wet_rows(const un_mesher_region *r)
{
    const un_lattice *l = &r->lattice;
    double least = fmin(l->h[1], l->h[2]);
    return (int32_t)round(0.5 * r->in->grid->h / least);
}

/* Rings of the band, and the layer of phi around it (mesher_lattice.c). */
#define BAND 5
/* Of cells whose particles feed nodes. */
#define FEED 2

/* Rows of cells around its own that matter to a rank, or more. */
static int32_t farthest(const un_mesher_region *r)
{
    double step = fmax(r->lattice.h[1], r->lattice.h[2]) / r->in->grid->h;
    return (int32_t)fmin(ceil((2 + wet_rows(r)) * step), UN_MESHER_FAR) + BAND + 4;
}

static un_status find_rows(un_mesher_region *r)
{
    const un_grid *g = r->in->grid;
    const un_lattice *l = &r->lattice;
    size_t nodes = (size_t)l->n[1] * (size_t)l->n[2], cells = (size_t)g->n[1] * (size_t)g->n[2];
    int32_t me = un_rank(r->ctx);
    r->node_owner = un_arena_alloc(&r->arena, nodes, sizeof *r->node_owner);
    r->nodes = un_arena_alloc(&r->arena, nodes, 1);
    r->far = un_arena_alloc(&r->arena, cells, 1);
    uint8_t *other = un_arena_alloc(&r->arena, nodes > cells ? nodes : cells, 1);
    if (!r->node_owner || !r->nodes || !r->far || !other) return UN_ERROR_MEMORY;
    for (size_t row = 0; row < nodes; row++) {
        r->node_owner[row] = un_mesher_owner(r, row_position(r, (int64_t)row));
        r->nodes[row] = r->node_owner[row] == me ? UN_NODES_OWN : 0;
    }
    for (int n = 0; n < 2; n++) /* a contour's vertices are numbered by these */
        widen(r->nodes, other, l->n[1], l->n[2], n ? UN_NODES_LOOSE : UN_NODES_OWN, UN_NODES_LOOSE);
    mark_around_cells(r);
    for (int32_t n = 0; n < wet_rows(r); n++)
        widen(r->nodes, other, l->n[1], l->n[2], UN_NODES_SAMPLED, UN_NODES_SAMPLED);
    /* far: how many rows of cells around own ones that takes */
    for (size_t row = 0; row < cells; row++)
        r->far[row] = owner_of_cell(r, (int64_t)row * g->n[0]) == me ? UN_MESHER_FAR : 0;
    for (int32_t n = 1; n < un_clampi(farthest(r), 0, UN_MESHER_FAR - 1); n++)
        widen(r->far, other, g->n[1], g->n[2], (uint8_t)(UN_MESHER_FAR - n + 1),
              (uint8_t)(UN_MESHER_FAR - n));
    for (size_t row = 0; row < cells; row++) r->far[row] = (uint8_t)(UN_MESHER_FAR - r->far[row]);
    for (size_t row = 0; row < nodes; row++) {
        int64_t cell = un_grid_cell_at(g, row_position(r, (int64_t)row));
        if (r->nodes[row] && r->far[cell_row(g, cell)] > r->reach)
            r->reach = r->far[cell_row(g, cell)];
    }
    return UN_OK;
}

/* ---- what it has ---- */

static un_status find_own(un_mesher_region *r)
{
    const un_mesher *in = r->in;
    const un_bins *b = in->bins;
    size_t count = (size_t)in->particles->count + 1;
    r->own = un_arena_alloc(&r->arena, count, 1);
    r->drop = un_arena_alloc(&r->arena, count, 1);
    r->size = un_arena_alloc(&r->arena, count, sizeof *r->size);
    if (!r->own || !r->drop || !r->size) return UN_ERROR_MEMORY;
    memset(r->own, 0, count);
    memset(r->drop, 0, count);
    for (int32_t n = 0; n < b->block_count; n++) {
        const int32_t *first = b->begin + (int64_t)b->rank[n] * b->block_cells;
        if (r->owner[n] == un_rank(r->ctx))
            memset(r->own + first[0], 1, (size_t)(first[b->block_cells] - first[0]));
    }
    for (int32_t q = 0; q < in->particles->count; q++) {
        r->size[q] = (float)un_particle_radius(in->particles->volume[q]);
        if (r->own[q] && r->size[q] > r->largest) r->largest = r->size[q];
    }
    return UN_OK;
}

static un_status begin_region(un_mesher_region *r)
{
    const un_mesher *in = r->in;
    un_status status = un_bins_find_owners(in->bins, in->share, &r->owner);
    if (status == UN_OK) status = find_rows(r);
    if (status == UN_OK) status = find_own(r);
    UN_TRY(un_ranks_agree(r->ctx, status));
    r->largest = un_ranks_max(r->ctx, r->largest);
    return un_bins_find_ids(in->bins, in->share, in->particles->count, &r->id);
}

static void end_region(un_mesher_region *r)
{
    un_free(r->ctx, r->owner);
    un_free(r->ctx, r->id);
    un_free(r->ctx, r->radius);
    un_hulls_destroy(r->hulls);
    un_arena_free(&r->arena);
}

/* ---- the lattice ---- */

static void find_occupied(const un_mesher_region *r, uint8_t *occupied)
{
    const un_mesher *in = r->in;
    const un_grid *g = in->grid;
    for (int64_t row = 0; row < (int64_t)g->n[1] * g->n[2]; row++) {
        if (r->far[row] > 0) continue;
        for (int32_t i = 0; i < g->n[0]; i++) {
            uint32_t cell =
                un_bins_cell(in->bins, i, (int32_t)(row % g->n[1]), (int32_t)(row / g->n[1]));
            occupied[row * g->n[0] + i] = in->bins->begin[cell] < in->bins->begin[cell + 1];
        }
    }
}

/* Fields that a step leaves behind at own cells, and which cells have particles. */
static un_status share_fields(const un_mesher_region *r, uint8_t *occupied, int32_t width)
{
    const un_mesher *in = r->in;
    un_layered fields[3] = {{(void *)(uintptr_t)in->phi, sizeof *in->phi},
                            {in->walls->volume, sizeof *in->walls->volume},
                            {occupied, 1}};
    un_layered u[3];
    find_occupied(r, occupied);
    for (int a = 0; a < 3; a++) u[a] = (un_layered){in->u[a], sizeof *in->u[a]};
    UN_TRY(un_grid_share(in->grid, fields, 3, width));
    return un_grid_share(in->grid, u, 3, 2); /* for vertices in own cells */
}

static un_status get_particles(const un_mesher_region *r, const un_lattice_mesher *s,
                               un_near_cells *near)
{
    const un_mesher *in = r->in;
    const un_grid *g = in->grid;
    int64_t rows = (int64_t)g->n[1] * g->n[2];
    uint8_t *row = un_alloc(r->ctx, (size_t)rows + 1, 1);
    UN_TRY(un_ranks_agree(r->ctx, row ? UN_OK : UN_ERROR_MEMORY));
    for (int64_t n = 0; n < rows; n++) row[n] = r->far[n] <= r->reach + FEED;
    un_status status =
        un_near_cells_get(r->ctx, near, in->bins, in->share, in->particles, r->id, s->band, row);
    un_free(r->ctx, row);
    return status;
}

/* What is known of the flying particles among those near. */
static un_status place_flying(un_mesher_region *r, un_lattice_mesher *s, const un_near_cells *near)
{
    size_t count = (size_t)near->particles.count + 1;
    s->drop = un_arena_alloc(&s->arena, count, 1);
    s->slim = r->near;
    s->slim.place = un_arena_alloc(&s->arena, count, sizeof *s->slim.place);
    s->hulls = r->hulls;
    bool able = s->drop && s->slim.place;
    UN_TRY(un_ranks_agree(r->ctx, able ? UN_OK : UN_ERROR_MEMORY));
    un_mesher_place_near(r, s->slim.place, near->id, near->particles.count);
    return un_near_cells_values(near, "drop", s->drop, r->drop, 1);
}

/* Each rank finds how loose its particles are; others need to know. */
static un_status share_loose(un_mesher_region *r, un_lattice_mesher *s, const un_near_cells *near)
{
    for (int32_t n = 0; n < near->particles.count; n++)
        if (near->own[n] >= 0) r->radius[near->own[n]] = s->radius[n];
    UN_TRY(un_near_cells_values(near, "radius", s->radius, r->radius, sizeof *r->radius));
    return un_bins_share_copies(r->ctx, r->in->share, "radius", r->radius, sizeof *r->radius);
}

static un_status sample_near(un_mesher_region *r, un_lattice_mesher *s, un_mesher_part *part,
                             un_mesher *in, un_near_cells *near)
{
    UN_TRY(un_ranks_agree(r->ctx, un_mesher_find_band(s)));
    UN_TRY(get_particles(r, s, near));
    in->bins = near->bins;
    in->particles = &near->particles;
    part->own = near->own;
    if (r->slim_total > 0) UN_TRY(place_flying(r, s, near));
    UN_TRY(un_ranks_agree(r->ctx, un_mesher_find_colour(s)));
    UN_TRY(share_loose(r, s, near));
    un_mesher_add_loose(s);
    return UN_OK;
}

/* Own rows of the contour. */
static un_status sample(un_mesher_region *r, un_lattice_mesher *s, un_contour_part *rows)
{
    un_context *ctx = r->ctx;
    un_mesher in = *r->in;
    un_near_cells near = {0};
    int32_t width = (int32_t)un_ranks_max(ctx, r->reach) + BAND + 1;
    un_mesher_part part = {.nodes = r->nodes, .far = r->far, .band = r->reach + BAND};
    part.occupied = un_alloc_zero(ctx, (size_t)in.grid->cell_count, 1);
    r->radius = un_alloc_zero(ctx, (size_t)in.particles->count + 1, sizeof *r->radius);
    bool able = part.occupied && r->radius;
    un_status status = un_ranks_agree(ctx, able ? UN_OK : UN_ERROR_MEMORY);
    if (status == UN_OK) status = share_fields(r, part.occupied, width);
    s->in = &in;
    s->part = &part;
    if (status == UN_OK) status = sample_near(r, s, &part, &in, &near);
    un_free(ctx, part.occupied);
    un_near_cells_free(&near);
    un_free(ctx, s->band);
    un_free(ctx, s->touched);
    un_free(ctx, s->radius);
    s->band = s->touched = NULL;
    s->radius = NULL;
    if (status == UN_OK) status = un_surface_contour_part(ctx, &s->lattice, rows, s->mesh);
    un_free(ctx, s->lattice.phi);
    s->lattice.phi = NULL;
    s->hulls = NULL; /* the region's */
    s->in = r->in;
    s->part = NULL;
    return status;
}

/* ---- the mesh on rank 0 ---- */

/* Whether ranks have rows one after the other, so that what they send is in order. */
static bool in_order(const un_mesher_region *r)
{
    int64_t rows = (int64_t)r->lattice.n[1] * r->lattice.n[2];
    for (int64_t row = 1; row < rows; row++)
        if (r->node_owner[row] < r->node_owner[row - 1]) return false;
    return true;
}

/* Elements of all rows from those of the ranks one after the other. Frees what it takes. */
static void order_rows(const un_mesher_region *r, void **array, size_t size, const int32_t *count,
                       char *room, int64_t *at)
{
    int64_t rows = (int64_t)r->lattice.n[1] * r->lattice.n[2], to = 0;
    int32_t ranks = un_rank_count(r->ctx);
    memset(at, 0, ((size_t)ranks + 1) * sizeof *at);
    for (int64_t row = 0; row < rows; row++) at[r->node_owner[row] + 1] += count[row];
    for (int32_t n = 0; n < ranks; n++) at[n + 1] += at[n];
    for (int64_t row = 0; row < rows; row++) {
        int64_t *from = &at[r->node_owner[row]];
        memcpy(room + (size_t)to * size, (const char *)*array + (size_t)*from * size,
               (size_t)count[row] * size);
        *from += count[row];
        to += count[row];
    }
    un_free(r->ctx, *array);
    *array = room;
}

static un_status put_in_order(const un_mesher_region *r, un_trimesh *all,
                              const un_contour_part *rows)
{
    un_context *ctx = r->ctx;
    int64_t *at = un_alloc(ctx, (size_t)un_rank_count(ctx) + 1, sizeof *at);
    char *position = un_alloc(ctx, (size_t)all->vertex_count + 1, sizeof *all->position);
    char *triangle = un_alloc(ctx, (size_t)all->triangle_count + 1, sizeof *all->triangle);
    bool able = at && position && triangle;
    if (able) {
        void *vertices = all->position, *triangles = all->triangle;
        order_rows(r, &vertices, sizeof *all->position, rows->vertices, position, at);
        order_rows(r, &triangles, sizeof *all->triangle, rows->triangles, triangle, at);
        all->position = vertices;
        all->triangle = triangles;
    } else {
        un_free(ctx, position);
        un_free(ctx, triangle);
    }
    un_free(ctx, at);
    return able ? UN_OK : UN_ERROR_MEMORY;
}

/* Rank 0 gets the vertices and triangles of all. */
static un_status collect(const un_mesher_region *r, un_trimesh *mesh, const un_contour_part *rows)
{
    un_context *ctx = r->ctx;
    un_trimesh all = {0};
    un_range vertices = un_ranks_range(ctx, mesh->vertex_count);
    un_range triangles = un_ranks_range(ctx, mesh->triangle_count);
    bool first = un_rank(ctx) == 0;
    if (first) {
        all.position = un_alloc(ctx, (size_t)vertices.total + 1, sizeof *all.position);
        all.triangle = un_alloc(ctx, (size_t)triangles.total + 1, sizeof *all.triangle);
        all.vertex_count = (int32_t)vertices.total;
        all.triangle_count = (int32_t)triangles.total;
    }
    bool able = !first || (all.position && all.triangle);
    un_status status = un_ranks_agree(ctx, able ? UN_OK : UN_ERROR_MEMORY);
    if (status == UN_OK) {
        un_ranks_own_window(ctx, vertices, mesh->position, sizeof *mesh->position, 0,
                            vertices.total, all.position);
        un_ranks_own_window(ctx, triangles, mesh->triangle, sizeof *mesh->triangle, 0,
                            triangles.total, all.triangle);
        un_trimesh_free(ctx, mesh);
        if (first && !in_order(r)) status = put_in_order(r, &all, rows);
    }
    if (status == UN_OK)
        *mesh = all;
    else
        un_trimesh_free(ctx, &all);
    return un_ranks_agree(ctx, status);
}

/* ---- around vertices ---- */

/* What the rank of a vertex says of it. */
typedef struct answer {
    un_vec3 velocity;
    float loose, held, too_thick;
    uint32_t nearest; /* a particle's number among all; UN_MESHER_NOBODY */
    uint8_t still;
} answer;

/* Looks around the vertices of s->mesh, whose arrays become answers. */
static un_status look_around(un_mesher_region *r, un_trimesh *asked, answer **answers)
{
    un_context *ctx = r->ctx;
    un_lattice_mesher s = {.ctx = ctx, .in = r->in, .mesh = asked, .lattice = r->lattice};
    size_t count = (size_t)r->in->particles->count + 1;
    un_arena_init(&s.arena, ctx);
    s.size = r->size;
    s.radius = r->radius;
    s.drop = r->drop;
    s.slim = r->near;
    s.slim.place = un_arena_alloc(&s.arena, count, sizeof *s.slim.place);
    s.hulls = r->hulls;
    *answers = un_alloc(ctx, (size_t)asked->vertex_count + 1, sizeof **answers);
    un_status status = s.slim.place && *answers ? UN_OK : UN_ERROR_MEMORY;
    if (status == UN_OK) {
        un_mesher_place_near(r, s.slim.place, r->id, r->in->particles->count);
        status = un_mesher_look_around(&s);
    }
    for (int32_t v = 0; status == UN_OK && v < asked->vertex_count; v++) {
        answer *a = &(*answers)[v];
        memset(a, 0, sizeof *a);
        a->velocity = asked->velocity[v];
        a->loose = s.loose[v], a->held = s.held[v], a->too_thick = s.too_thick[v];
        a->nearest = s.nearest[v] < 0 ? UN_MESHER_NOBODY : r->id[s.nearest[v]];
        a->still = s.still[v];
    }
    un_arena_free(&s.arena);
    return status;
}

/* Rank 0 has vertices, in the order of the ranks that they go to. */
static un_status list_vertices(const un_mesher_region *r, const un_trimesh *mesh, int32_t **order,
                               int32_t **to, un_vec3 **x)
{
    un_context *ctx = r->ctx;
    int64_t count = mesh->vertex_count;
    int32_t ranks = un_rank_count(ctx);
    int64_t *first = un_alloc_zero(ctx, (size_t)ranks + 2, sizeof *first);
    *order = un_alloc(ctx, (size_t)count + 1, sizeof **order);
    *to = un_alloc(ctx, (size_t)count + 1, sizeof **to);
    *x = un_alloc(ctx, (size_t)count + 1, sizeof **x);
    bool able = first && *order && *to && *x;
    for (int64_t v = 0; able && v < count; v++) first[un_mesher_owner(r, mesh->position[v]) + 1]++;
    for (int32_t n = 0; able && n < ranks; n++) first[n + 1] += first[n];
    for (int64_t v = 0; able && v < count; v++) {
        int32_t owner = un_mesher_owner(r, mesh->position[v]);
        int64_t k = first[owner]++;
        (*order)[k] = (int32_t)v;
        (*to)[k] = owner;
        (*x)[k] = mesh->position[v];
    }
    un_free(ctx, first);
    return able ? UN_OK : UN_ERROR_MEMORY;
}

static un_status take_answers(un_lattice_mesher *s, const answer *in, const int32_t *order)
{
    un_trimesh *mesh = s->mesh;
    size_t count = (size_t)mesh->vertex_count + 1;
    mesh->velocity = un_alloc(s->ctx, count, sizeof *mesh->velocity);
    s->loose = un_arena_alloc(&s->arena, count, sizeof *s->loose);
    s->held = un_arena_alloc(&s->arena, count, sizeof *s->held);
    s->too_thick = un_arena_alloc(&s->arena, count, sizeof *s->too_thick);
    s->still = un_arena_alloc(&s->arena, count, 1);
    s->nearest = un_arena_alloc(&s->arena, count, sizeof *s->nearest);
    bool able = s->loose && s->held && s->too_thick && s->still && s->nearest;
    if (!mesh->velocity || !able) return UN_ERROR_MEMORY;
    for (int64_t k = 0; k < mesh->vertex_count; k++) {
        int32_t v = order[k];
        mesh->velocity[v] = in[k].velocity;
        s->loose[v] = in[k].loose, s->held[v] = in[k].held, s->too_thick[v] = in[k].too_thick;
        s->nearest[v] = (int32_t)in[k].nearest;
        s->still[v] = in[k].still;
    }
    return UN_OK;
}

/* Answers go back to rank 0, in the order in which it asked. */
static un_status send_answers(un_mesher_region *r, const answer *mine, int64_t count, void **all,
                              int64_t *all_count)
{
    int32_t *back = un_alloc_zero(r->ctx, (size_t)count + 1, sizeof *back);
    un_status status = un_ranks_agree(r->ctx, back ? UN_OK : UN_ERROR_MEMORY);
    if (status == UN_OK)
        status =
            un_exchange_send(r->ctx, "answers", mine, back, count, sizeof *mine, all, all_count);
    un_free(r->ctx, back);
    return status;
}

/* Each rank looks around the vertices in its cells; rank 0 gets to know. Nearest particles are then
 * numbers among all. */
static un_status ask_around(un_mesher_region *r, un_lattice_mesher *s)
{
    un_context *ctx = r->ctx;
    int32_t *order = NULL, *to = NULL;
    un_vec3 *x = NULL;
    void *in = NULL, *all = NULL;
    answer *mine = NULL;
    int64_t count, all_count;
    un_trimesh asked = {0};
    un_status status = un_ranks_agree(ctx, list_vertices(r, s->mesh, &order, &to, &x));
    if (status == UN_OK)
        status =
            un_exchange_send(ctx, "vertices", x, to, s->mesh->vertex_count, sizeof *x, &in, &count);
    un_free(ctx, x);
    un_free(ctx, to);
    if (status == UN_OK) {
        asked.position = in;
        asked.vertex_count = (int32_t)count;
        status = un_ranks_agree(ctx, look_around(r, &asked, &mine));
        un_trimesh_free(ctx, &asked);
    }
    if (status == UN_OK) status = send_answers(r, mine, count, &all, &all_count);
    un_free(ctx, mine);
    if (status == UN_OK && un_rank(ctx) == 0) status = take_answers(s, all, order);
    un_free(ctx, all);
    un_free(ctx, order);
    return un_ranks_agree(ctx, status);
}

/* ---- all of it ---- */

static un_status make(un_mesher_region *r, un_lattice_mesher *s, un_mesher_rank0 *z)
{
    un_context *ctx = r->ctx;
    size_t rows = (size_t)s->lattice.n[1] * (size_t)s->lattice.n[2];
    UN_TRY(begin_region(r));
    UN_TRY(un_mesher_find_flying(r));
    un_contour_part part = {.vertices = un_arena_alloc(&r->arena, rows, sizeof(int32_t)),
                            .triangles = un_arena_alloc(&r->arena, rows, sizeof(int32_t))};
    uint8_t *known = un_arena_alloc(&r->arena, rows, 1);
    bool able = part.vertices && part.triangles && known;
    UN_TRY(un_ranks_agree(ctx, able ? UN_OK : UN_ERROR_MEMORY));
    for (size_t row = 0; row < rows; row++)
        known[row] = r->nodes[row] == UN_NODES_OWN     ? UN_ROW_OWN
                     : r->nodes[row] == UN_NODES_LOOSE ? UN_ROW_KNOWN
                                                       : 0;
    part.rows = known;
    UN_TRY(sample(r, s, &part));
    un_arena_reset(&s->arena);
    UN_TRY(collect(r, s->mesh, &part));
    UN_TRY(un_ranks_agree(ctx, un_rank(ctx) == 0 ? un_mesher_smooth(s) : UN_OK));
    UN_TRY(ask_around(r, s));
    s->slim = (un_slim){0};
    UN_TRY(un_mesher_gather_thin(r, s, z));
    return un_mesher_fit_volume_ranks(r, s, z);
}

un_status un_surface_mesh_ranks(un_context *ctx, un_trimesh *mesh, const un_mesher *in)
{
    un_mesher_region r = {.ctx = ctx, .in = in};
    un_lattice_mesher s = {.ctx = ctx, .in = in, .mesh = mesh};
    un_mesher_rank0 z = {.r = &r};
    *mesh = (un_trimesh){0};
    un_arena_init(&r.arena, ctx);
    un_arena_init(&s.arena, ctx);
    un_mesher_lattice(&r.lattice, in->grid, in->resolution);
    un_mesher_lattice(&s.lattice, in->grid, in->resolution);
    un_status status = make(&r, &s, &z);
    un_mesher_free(&s);
    end_region(&r);
    if (status != UN_OK) un_trimesh_free(ctx, mesh);
    return status;
}
