/* Transfers along the lattice: every row that does not survive coarsening lies halfway between two
 * places that do, and takes the mean of their values.
 *
 * Grid. Rows with even coordinates survive. One with odd coordinates along some axes lies halfway
 * along the diagonal of those axes: linear interpolation on the Kuhn tetrahedra of the coarse
 * cubes. For these, as for the finer ones, linear elements give the seven-point stencil, so P^T A P
 * is a seven-point stencil again, away from boundaries.
 *
 * BCC. Let s be half an edge of the finest leaf at a node, and take coordinates in s: corners are
 * even, centres odd. In the lattice twice as coarse, nodes have all coordinates 0 or all 2 modulo
 * 4. A centre lies halfway between such a corner and such a centre; the middle of a coarse edge
 * between its ends; the middle of a coarse face between the centres on both sides. That is linear
 * interpolation on the coarse tetrahedra, which the fine ones divide into eight: the coarse matrix
 * has the fine one's nine-point stencil. In the boundary of the brick the same holds for the two
 * coordinates along it.
 *
 * Scales are local: the nodes of a coarse leaf are coarsened together with those of a fine one.
 * Where the other side of a face is coarser, one of the two places may vanish in the same step;
 * then the places from which it takes its own value stand in for it.
 *
 * Places without an unknown are beyond the surface or in a wall; so are places that no coupling
 * leads to, behind a wall thinner than a cell. The row tells which: where its sum is positive, the
 * surface holds its value near zero, and missing places count as zero; otherwise they do not
 * count. */
#include "linalg/amg.h"

/* A row whose sum exceeds this share of its diagonal is at the surface. */
#define HELD 0.02f
/* Depth of stand-ins for stand-ins: as deep as levels differ around a node. */
#define DEPTH_MAX 3

/* Coordinates have 21 bits, keys three times as many. */
#define SCALE_MAX 21

typedef struct geometric {
    un_amg *amg;
    un_amg_level *level;
    const un_amg_graph *g;
    const float *diagonal;
    const uint64_t *place; /* their order: un_morton_order, un_sites_order */
    uint64_t size;         /* BCC: of the lattice, as a Morton code */
    const uint8_t *scale;  /* log2 s */
    int32_t shift, n;
    int64_t begin, end;      /* rows whose places are in the table */
    uint64_t least, last;    /* their places */
    const un_amg_query *far; /* rows of other ranks; NULL: all are here */
    int32_t (*other)[2];     /* by row: the two rows it lies between, -1: none */
    uint64_t *place_next;
    uint8_t *scale_next;
} geometric;

typedef struct point {
    int32_t x[3];
} point;

static inline point decode(const geometric *p, uint64_t key)
{
    const un_sites *sites = &p->amg->sites;
    point q;
    if (sites->kind == UN_SITES_BCC) {
        for (int a = 0; a < 3; a++) q.x[a] = (int32_t)un_morton_order_gather(key >> a);
        return q;
    }
    un_sites_place(sites, key, q.x);
    return q;
}

/* By key, in the table. */
static inline int32_t find_own(const geometric *p, uint64_t key)
{
    const int32_t *bound = p->amg->table + ((key >> p->shift) - (p->least >> p->shift));
    const uint64_t *k = p->place + bound[0];
    uint32_t count = (uint32_t)(bound[1] - bound[0]);
    while (count > 0) { /* counts the keys below `key` */
        uint32_t half = (count + 1) / 2;
        k += k[half - 1] < key ? half : 0;
        count -= half;
    }
    int32_t i = (int32_t)(k - p->place);
    return i < p->end && p->place[i] == key ? i : -1;
}

/* On other ranks. */
static int32_t find_far(const geometric *p, uint64_t key)
{
    int64_t low = 0, high = p->far->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (p->far->key[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->far->count && p->far->key[low] == key ? p->far->row[low] : -1;
}

static inline uint64_t key_of(const geometric *p, point q)
{
    const un_sites *sites = &p->amg->sites;
    if (sites->kind == UN_SITES_BCC)
        return un_morton_order(un_morton((uint32_t)q.x[0], (uint32_t)q.x[1], (uint32_t)q.x[2]),
                               p->size);
    return un_sites_order(sites, q.x[0], q.x[1], q.x[2]);
}

static inline bool is_inside(const un_sites *sites, point q)
{
    bool bcc = sites->kind == UN_SITES_BCC;
    for (int a = 0; a < 3; a++)
        if (q.x[a] < 0 || q.x[a] >= sites->size[a] + bcc) return false;
    return true;
}

/* The row at a place, -1: none. */
static inline int32_t find(const geometric *p, point q)
{
    const un_sites *sites = &p->amg->sites;
    if (!is_inside(sites, q)) return -1;
    uint64_t key = key_of(p, q);
    if (key > p->last || key < p->least) return p->far ? find_far(p, key) : -1;
    return find_own(p, key);
}

/* BCC: is it a centre, with all coordinates odd? Nodes in the boundary of the brick never are;
 * those in its upper faces have an odd order. */
static inline bool is_center(uint64_t key, int32_t scale)
{
    return scale < SCALE_MAX - 1 && (key & 7) == 0 && (key >> 3 * (scale + 1) & 7) == 7;
}

/* Half the vector between the two places that a row takes its value from; false: it survives. */
static bool step_of(const geometric *p, int32_t i, point *at, int32_t d[3])
{
    const un_sites *sites = &p->amg->sites;
    int32_t scale = p->scale[i], s = 1 << (scale < SCALE_MAX ? scale : SCALE_MAX);
    point q = *at = decode(p, p->place[i]);
    d[0] = d[1] = d[2] = 0;
    if (scale > SCALE_MAX) return false;
    if (sites->kind == UN_SITES_GRID) {
        for (int a = 0; a < 3; a++) d[a] = q.x[a] >> scale & 1 ? s : 0;
        return d[0] | d[1] | d[2];
    }
    int32_t free_axes = 0, odd = 0, twos = 0, zero_axis = 0, two_axis = 0, c[3];
    for (int a = 0; a < 3; a++) {
        c[a] = q.x[a] == 0 || q.x[a] == sites->size[a] ? -1 : q.x[a] >> scale & 3;
        if (c[a] < 0) continue;
        free_axes++;
        odd += c[a] & 1;
        if (c[a] == 0) zero_axis = a;
        if (c[a] == 2) {
            two_axis = a;
            twos++;
        }
    }
    if (odd > 0) {
        for (int a = 0; a < 3; a++)
            if (c[a] >= 0 && c[a] & 1) d[a] = c[a] == 1 ? s : -s;
        return true;
    }
    if (twos == 0 || (twos == free_axes && free_axes > 1)) return false;
    if (twos == 1)
        d[two_axis] = 2 * s;
    else
        d[zero_axis] = 2 * s;
    return true;
}

static bool is_held(const geometric *p, int32_t i)
{
    return p->g->excess[i] > HELD * p->diagonal[i];
}

/* Do couplings lead from row i to the other one in this many steps? */
static bool leads(const un_amg_graph *g, int32_t i, int32_t other, int hops)
{
    for (int32_t k = g->row[i]; k < g->row[i + 1]; k++) {
        int32_t j = g->col[k];
        if (j == i || un_amg_entry(g, k) == 0) continue;
        if (j == other || (hops > 1 && leads(g, j, other, hops - 1))) return true;
    }
    return false;
}

/* True if nothing is missing around the row. On coarse levels this cannot be known. */
static bool is_whole(const geometric *p, int32_t i)
{
    const un_amg_graph *g = p->g;
    int32_t count = 0;
    if (!g->val_a) return false;
    for (int32_t k = g->row[i]; k < g->row[i + 1]; k++) count += g->col[k] != i && g->val_a[k] != 0;
    const un_sites *sites = &p->amg->sites;
    return count >= (sites->kind == UN_SITES_BCC ? 8 : sites->size[2] == 1 ? 4 : 6);
}

/* The row at at + sign d. On a grid, if a wall is in the way, the row at the mirror image along one
 * axis or two: a wall reflects evenly. Rows held by the surface have air there, and no mirror
 * image. */
static int32_t find_other(const geometric *p, int32_t i, point at, const int32_t d[3], int sign)
{
    static const int8_t flips[] = {0, 1, 2, 4, 3, 5, 6}; /* bits: axes */
    bool grid = p->amg->sites.kind == UN_SITES_GRID, mirror = grid && !is_held(p, i);
    int hops = (d[0] != 0) + (d[1] != 0) + (d[2] != 0);
    if (!grid) hops = hops == 1 ? 2 : 1;
    bool whole = is_held(p, i) || is_whole(p, i);
    for (int f = 0; f < (mirror ? 7 : 1); f++) {
        point to;
        bool changed = true;
        for (int a = 0; a < 3; a++) {
            bool flip = flips[f] >> a & 1;
            changed &= !flip || d[a] != 0;
            to.x[a] = at.x[a] + (flip ? -sign : sign) * d[a];
        }
        int32_t other = changed ? find(p, to) : -1;
        if (other >= 0 && (whole || leads(p->g, i, other, hops))) return other;
    }
    return -1;
}

/* The couplings of row i that lead to two places, -1: none. */
static inline void scan(const geometric *p, int32_t i, const uint64_t key[2], int32_t found[2])
{
    const un_amg_graph *g = p->g;
    int32_t at[2] = {-1, -1};
    for (int32_t k = g->row[i]; k < g->row[i + 1]; k++) {
        uint64_t place = p->place[g->col[k]];
        at[0] = place == key[0] ? k : at[0];
        at[1] = place == key[1] ? k : at[1];
    }
    for (int side = 0; side < 2; side++)
        found[side] = at[side] >= 0 && un_amg_entry(g, at[side]) != 0 ? g->col[at[side]] : -1;
}

/* BCC: at + sign d. */
static inline uint64_t key_at(const geometric *p, point at, int sign, int32_t dx, int32_t dy,
                              int32_t dz)
{
    point to = {{at.x[0] + sign * dx, at.x[1] + sign * dy, at.x[2] + sign * dz}};
    return key_of(p, to);
}

static int32_t find_key(const geometric *p, uint64_t key)
{
    return key > p->last || key < p->least ? find_far(p, key) : find_own(p, key);
}

/* For corners two cells apart: between them and the row lie centres, each halfway between one of
 * them and another corner. -1: the corner may still exist. */
static void find_along(const geometric *p, int32_t i, point at, const int32_t d[3],
                       int32_t other[2])
{
    int32_t s = (d[0] + d[1] + d[2]) / 2, middle[2], scale = p->scale[i];
    uint64_t half[2] = {key_at(p, at, -1, s, s, s), key_at(p, at, 1, s, s, s)};
    scan(p, i, half, middle);
    for (int side = 0; side < 2; side++) {
        int32_t m = middle[side];
        if (m < 0 || p->scale[m] != scale || !is_center(half[side], scale)) continue;
        uint64_t key = key_at(p, at, side ? 1 : -1, d[0], d[1], d[2]);
        if (p->far) { /* the place of a row of another rank need not be known */
            int32_t there = find_key(p, key);
            if (there >= 0 && (p->other[m][0] == there || p->other[m][1] == there))
                other[side] = there;
            continue;
        }
        for (int q = 0; q < 2; q++) {
            int32_t far = p->other[m][q];
            if (far >= 0 && p->place[far] == key) other[side] = far;
        }
    }
}

/* ---- which rows survive ---- */

/* BCC: centres first, which are half of the rows. Following couplings finds rows faster than
 * looking up their places. */
static void center_block(void *arg, int64_t begin, int64_t end)
{
    geometric *p = arg;
    for (int32_t i = (int32_t)begin; i < end; i++) {
        int32_t scale = p->scale[i], d[3], *other = p->other[i];
        other[0] = other[1] = -1;
        if (p->level->aggregate[i] == UN_AMG_OUT || !is_center(p->place[i], scale)) continue;
        point at = decode(p, p->place[i]);
        for (int a = 0; a < 3; a++) d[a] = (2 - (at.x[a] >> scale & 3)) * (1 << scale);
        uint64_t key[2] = {key_at(p, at, -1, d[0], d[1], d[2]), key_at(p, at, 1, d[0], d[1], d[2])};
        scan(p, i, key, other);
        for (int side = 0; side < 2; side++)
            if (other[side] < 0) other[side] = find_other(p, i, at, d, side ? 1 : -1);
    }
}

/* The two rows that a row other than a centre lies between; false: it survives. */
static bool find_others(const geometric *p, int32_t i, int32_t other[2])
{
    point at;
    int32_t d[3];
    other[0] = other[1] = -1;
    if (!step_of(p, i, &at, d)) return false;
    bool axis = (d[0] != 0) + (d[1] != 0) + (d[2] != 0) == 1;
    if (axis && p->amg->sites.kind == UN_SITES_BCC) find_along(p, i, at, d, other);
    for (int side = 0; side < 2; side++)
        if (other[side] < 0) other[side] = find_other(p, i, at, d, side ? 1 : -1);
    return true;
}

/* A row survives if it has no rows to take its value from and the surface does not hold it. */
static void survive_block(void *arg, int64_t begin, int64_t end)
{
    geometric *p = arg;
    un_amg_level *level = p->level;
    bool bcc = p->amg->sites.kind == UN_SITES_BCC;
    int32_t count = 0;
    for (int32_t i = (int32_t)begin; i < end; i++) {
        int32_t *other = p->other[i];
        if (level->aggregate[i] == UN_AMG_OUT) continue;
        bool known = bcc && is_center(p->place[i], p->scale[i]);
        bool survives = !known && !find_others(p, i, other);
        if (!survives) survives = other[0] < 0 && other[1] < 0 && !is_held(p, i);
        level->aggregate[i] = survives ? count++ : UN_AMG_FREE;
    }
    level->first[begin / level->grain + 1] = count;
}

static void number_block(void *arg, int64_t begin, int64_t end)
{
    geometric *p = arg;
    un_amg_level *level = p->level;
    int32_t first = level->first[begin / level->grain];
    for (int64_t i = begin; i < end; i++) {
        if (level->aggregate[i] < 0) continue;
        int32_t c = level->aggregate[i] += first;
        p->place_next[c] = p->place[i];
        p->scale_next[c] = (uint8_t)(p->scale[i] + 1);
    }
}

/* ---- where the other rows take their values from ---- */

static void add(un_amg_parents *parents, int32_t id, float weight)
{
    for (int32_t q = 0; q < parents->count; q++)
        if (parents->id[q] == id) {
            parents->weight[q] += weight;
            return;
        }
    UN_ASSERT(parents->count < UN_AMG_PARENTS_MAX); /* 2 to the DEPTH_MAX + 1 at most */
    parents->id[parents->count] = id;
    parents->weight[parents->count++] = weight;
}

static void gather(const geometric *p, int32_t i, float weight, int depth, un_amg_parents *parents)
{
    const int32_t *coarse = p->level->aggregate;
    if (coarse[i] >= 0) {
        add(parents, coarse[i], weight);
        return;
    }
    if (coarse[i] == UN_AMG_OUT || depth > DEPTH_MAX) return;
    const int32_t *other = p->other[i];
    bool both = other[0] >= 0 && other[1] >= 0;
    float share = both || is_held(p, i) ? 0.5f * weight : weight;
    for (int side = 0; side < 2; side++)
        if (other[side] >= 0) gather(p, other[side], share, depth + 1, parents);
}

static void row_of(const void *arg, int32_t i, un_amg_parents *parents)
{
    gather(arg, i, 1, 0, parents);
}

/* ---- places ---- */

static uint64_t lattice_size(const un_sites *sites)
{
    return un_morton((uint32_t)sites->size[0], (uint32_t)sites->size[1], (uint32_t)sites->size[2]);
}

static void load_sites(void *arg, int64_t begin, int64_t end)
{
    un_amg *amg = arg;
    const un_sites *sites = &amg->sites;
    const un_spread *over = amg->spread;
    bool bcc = sites->kind == UN_SITES_BCC;
    uint64_t size = lattice_size(sites);
    for (int64_t i = begin; i < end; i++) {
        int32_t site = over ? 0 : sites->site[i];
        uint64_t place = over  ? over->place[i]
                         : bcc ? sites->key[site]
                               : un_sites_order_of(sites, site);
        amg->place[0][i] = bcc ? un_morton_order(place, size) : place;
        amg->scale_of[0][i] = over  ? over->scale[i]
                              : bcc ? (uint8_t)(sites->level_max - sites->level[site])
                                    : 0;
    }
}

/* table[m]: the first row whose place is not before m << shift. Row i fills the entries after its
 * predecessor's, up to its own. */
static void fill_table(void *arg, int64_t begin, int64_t end)
{
    geometric *p = arg;
    for (int64_t i = begin; i < end; i++) {
        int64_t base = (int64_t)(p->least >> p->shift);
        int64_t from = i == p->begin ? 0 : (int64_t)(p->place[i - 1] >> p->shift) + 1 - base;
        int64_t to = (int64_t)(p->place[i] >> p->shift) - base;
        for (int64_t m = from; m <= to; m++) p->amg->table[m] = (int32_t)i;
        if (i == p->end - 1) p->amg->table[to + 1] = (int32_t)p->end;
    }
}

/* ---- several ranks ---- */

static int32_t row_at(const void *arg, uint64_t key)
{
    const geometric *p = arg;
    return p->begin == p->end || key > p->last || key < p->least ? -1 : find_own(p, key);
}

/* On a grid, places within a step of the row's are all between this rank's. */
static bool is_far_inside(const geometric *p, int32_t i)
{
    const un_sites *sites = &p->amg->sites;
    uint64_t nx = (uint64_t)sites->size[0], ny = (uint64_t)sites->size[1], place = p->place[i];
    if (sites->kind != UN_SITES_GRID || p->scale[i] > SCALE_MAX) return false;
    if (sites->curve) { /* within a bar, all of whose places are between */
        uint64_t bar = nx << sites->curve->shift, s = (uint64_t)1 << p->scale[i];
        uint64_t first = place / bar * bar, row = place % bar / nx, j = row % UN_BAR,
                 k = row / UN_BAR;
        bool flat = sites->curve->shift == 3;
        bool inside = j >= s && j + s < UN_BAR && (flat || (k >= s && k + s < UN_BAR));
        return inside && first >= p->least && first + bar <= p->last;
    }
    uint64_t most = (1 + nx * (1 + ny)) << p->scale[i];
    return place >= p->least + most && place + most <= p->last;
}

/* Asks for the rows at all places that own rows may take their values from. */
static un_status ask_for_rows(geometric *p, un_amg_query *query)
{
    un_context *ctx = p->amg->ctx;
    const un_sites *sites = &p->amg->sites;
    bool bcc = sites->kind == UN_SITES_BCC;
    for (int64_t i = p->begin; i < p->end; i++) {
        point at, to;
        int32_t d[3];
        if (p->level->aggregate[i] == UN_AMG_OUT || is_far_inside(p, (int32_t)i)) continue;
        if (!step_of(p, (int32_t)i, &at, d)) continue;
        for (int f = 0; f < 8; f++) {
            bool same = true, changed = true;
            for (int a = 0; a < 3; a++) {
                bool up = f >> a & 1;
                changed &= !up || d[a] != 0;
                same &= up || d[a] == 0;
                to.x[a] = at.x[a] + (up ? d[a] : -d[a]);
            }
            if (!changed || (bcc && f != 0 && !same) || !is_inside(sites, to)) continue;
            uint64_t key = key_of(p, to);
            if (key >= p->least && key <= p->last) continue;
            UN_TRY(un_array_reserve(ctx, (void **)&query->key, &query->room_key,
                                    (size_t)query->count + 1, sizeof key));
            query->key[query->count++] = key;
        }
    }
    return un_amg_ask(p->amg, p->level, p->place, query, row_at, p);
}

static un_status make_table(un_amg *amg, geometric *p)
{
    un_context *ctx = amg->ctx;
    int64_t count = p->end - p->begin;
    if (count == 0) {
        p->least = 1; /* nothing is between least and last */
        return UN_OK;
    }
    p->least = p->far ? p->place[p->begin] : 0;
    p->last = p->place[p->end - 1];
    while ((p->last >> p->shift) - (p->least >> p->shift) > (uint64_t)count) p->shift++;
    UN_AMG_NEED(ctx, amg->table, amg->capacity_table,
                (p->last >> p->shift) - (p->least >> p->shift) + 2);
    un_parallel_part(ctx, p->level->own, un_block_grain(p->n), fill_table, p);
    return UN_OK;
}

/* Finds what every row lies between, and which rows survive. */
static un_status find_survivors(un_amg *amg, geometric *p, un_amg_query *query)
{
    un_context *ctx = amg->ctx;
    un_amg_level *level = p->level;
    UN_TRY(make_table(amg, p));
    if (level->cut) UN_TRY(ask_for_rows(p, query));
    if (amg->sites.kind == UN_SITES_BCC) {
        un_amg_for_blocks(ctx, level, center_block, p);
        un_halo_share(level->near, p->other, sizeof *p->other);
    }
    un_amg_for_blocks(ctx, level, survive_block, p);
    return UN_OK;
}

un_status un_amg_geometric_transfer(un_amg *amg, int32_t l, const un_amg_graph *g,
                                    const float *diagonal, int32_t *coarse_count)
{
    un_context *ctx = amg->ctx;
    un_amg_level *level = &amg->level[l];
    int from = l % 2, to = 1 - from;
    int32_t n = level->n;
    un_amg_query query = {0};
    if (l == 0) {
        UN_AMG_NEED(ctx, amg->place[0], amg->capacity_place[0], n);
        UN_AMG_NEED(ctx, amg->scale_of[0], amg->capacity_scale_of[0], n);
        un_parallel_part(ctx, level->own, un_block_grain(n), load_sites, amg);
    }
    if (level->cut) UN_TRY(un_amg_know_rows(amg, l, g));
    geometric p = {.amg = amg,
                   .level = level,
                   .g = g,
                   .diagonal = diagonal,
                   .place = amg->place[from],
                   .size = lattice_size(&amg->sites),
                   .scale = amg->scale_of[from],
                   .n = n,
                   .begin = level->own.begin,
                   .end = level->own.end,
                   .far = level->cut ? &query : NULL};
    UN_AMG_NEED(ctx, amg->member, amg->capacity_member, 2 * (size_t)n);
    p.other = (int32_t(*)[2])amg->member;
    int64_t blocks = un_amg_blocks(level);
    memset(level->first, 0, (size_t)(blocks + 1) * sizeof *level->first);
    un_status status = find_survivors(amg, &p, &query);
    un_free(ctx, query.key);
    un_free(ctx, query.row);
    UN_TRY(status);
    if (level->cut) un_amg_share_counts(amg, level->first + 1, blocks);
    for (int64_t k = 0; k < blocks; k++) level->first[k + 1] += level->first[k];
    *coarse_count = level->first[blocks];
    if (*coarse_count == 0) return UN_OK;
    UN_AMG_NEED(ctx, amg->place[to], amg->capacity_place[to], *coarse_count);
    UN_AMG_NEED(ctx, amg->scale_of[to], amg->capacity_scale_of[to], *coarse_count);
    p.place_next = amg->place[to];
    p.scale_next = amg->scale_of[to];
    un_amg_for_blocks(ctx, level, number_block, &p);
    if (level->cut) {
        un_amg_ways ways = {level->aggregate, p.other, (float *)g->excess, (float *)diagonal};
        UN_TRY(un_amg_know_ways(amg, level, &ways));
    }
    return un_amg_build_means(amg, level, &amg->means[l], (const int32_t(*)[2])p.other, row_of, &p);
}
