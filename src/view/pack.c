/* Compact forms of surfaces, particles and cuts, to send. */
#include "view/view.h"

#include <stdlib.h>
#include <zlib.h>

/* ---- fewer triangles: vertices of one cell are merged [Rossignac and Borrel 1993] ---- */

typedef struct cluster {
    int32_t cell[3];
    int32_t count;
} cluster;

typedef struct clusters {
    cluster *items;
    int32_t *table; /* open addressing; -1: free */
    size_t room;
    int32_t count;
} clusters;

static int32_t find_cluster(clusters *c, const int32_t cell[3])
{
    uint64_t hash = un_hash64((uint32_t)cell[0]);
    hash = un_hash64(hash ^ (uint32_t)cell[1]);
    hash = un_hash64(hash ^ (uint32_t)cell[2]);
    size_t slot = hash & (c->room - 1);
    for (; c->table[slot] >= 0; slot = (slot + 1) & (c->room - 1))
        if (memcmp(c->items[c->table[slot]].cell, cell, 3 * sizeof *cell) == 0)
            return c->table[slot];
    c->table[slot] = c->count;
    c->items[c->count] = (cluster){.cell = {cell[0], cell[1], cell[2]}};
    return c->count++;
}

un_status un_view_simplify(un_context *ctx, un_trimesh *m, double cell)
{
    if (!(cell > 0) || m->vertex_count == 0) return UN_OK;
    clusters c = {.room = 16};
    int32_t *now = NULL;
    un_status status = UN_OK;
    while (c.room < 2 * (size_t)m->vertex_count) c.room *= 2;
    UN_ALLOC_DONE(ctx, c.items, m->vertex_count);
    UN_ALLOC_DONE(ctx, c.table, c.room);
    UN_ALLOC_DONE(ctx, now, m->vertex_count);
    memset(c.table, -1, c.room * sizeof *c.table);
    for (int32_t v = 0; v < m->vertex_count; v++) {
        un_vec3 x = m->position[v], n = m->normal ? m->normal[v] : un_v3(0, 0, 0);
        un_vec3 u = m->velocity ? m->velocity[v] : un_v3(0, 0, 0);
        int32_t at[3] = {(int32_t)floor(x.x / cell), (int32_t)floor(x.y / cell),
                         (int32_t)floor(x.z / cell)};
        int32_t k = find_cluster(&c, at), first = c.items[k].count++ == 0;
        now[v] = k;
        /* k <= v: the sums overwrite vertices already read */
        m->position[k] = first ? x : un_add(m->position[k], x);
        if (m->normal) m->normal[k] = first ? n : un_add(m->normal[k], n);
        if (m->velocity) m->velocity[k] = first ? u : un_add(m->velocity[k], u);
    }
    for (int32_t k = 0; k < c.count; k++) {
        double share = 1.0 / c.items[k].count;
        m->position[k] = un_scale(m->position[k], share);
        if (m->normal) m->normal[k] = un_normalize(m->normal[k]);
        if (m->velocity) m->velocity[k] = un_scale(m->velocity[k], share);
    }
    int32_t kept = 0;
    for (int32_t t = 0; t < m->triangle_count; t++) {
        int32_t a = now[m->triangle[t][0]], b = now[m->triangle[t][1]], d = now[m->triangle[t][2]];
        if (a == b || b == d || d == a) continue;
        m->triangle[kept][0] = a, m->triangle[kept][1] = b, m->triangle[kept][2] = d;
        kept++;
    }
    m->vertex_count = c.count;
    m->triangle_count = kept;
done:
    un_free(ctx, c.items);
    un_free(ctx, c.table);
    un_free(ctx, now);
    return status;
}

/* ---- bytes ---- */

typedef struct bytes {
    un_context *ctx;
    uint8_t *at;
    size_t used, room;
    un_status status;
} bytes;

static void put(bytes *b, const void *from, size_t count)
{
    if (b->status == UN_OK)
        b->status = un_array_reserve(b->ctx, (void **)&b->at, &b->room, b->used + count, 1);
    if (b->status != UN_OK) return;
    memcpy(b->at + b->used, from, count);
    b->used += count;
}
static void put_byte(bytes *b, int value)
{
    put(b, &(uint8_t){(uint8_t)value}, 1);
}
/* Small numbers of either sign take a byte. */
static void put_signed(bytes *b, int64_t value)
{
    uint64_t zigzag = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    for (; zigzag >= 128; zigzag >>= 7) put_byte(b, (int)(zigzag & 127) | 128);
    put_byte(b, (int)zigzag);
}

void un_view_add_base64(un_text *t, const uint8_t *from, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t length = (count + 2) / 3 * 4;
    if (t->status == UN_OK)
        t->status = un_array_reserve(t->ctx, (void **)&t->bytes, &t->room, t->used + length + 1, 1);
    if (t->status != UN_OK) return;
    char *to = t->bytes + t->used;
    for (size_t i = 0; i < count; i += 3) {
        size_t left = count - i;
        uint32_t three = (uint32_t)from[i] << 16 | (left > 1 ? (uint32_t)from[i + 1] << 8 : 0) |
                         (left > 2 ? from[i + 2] : 0);
        *to++ = digits[three >> 18];
        *to++ = digits[three >> 12 & 63];
        *to++ = left > 1 ? digits[three >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[three & 63] : '=';
    }
    *to = 0;
    t->used += length;
}

static un_status finish(un_text *t, bytes *b)
{
    un_status status = b->status;
    uint8_t *packed = NULL;
    if (status == UN_OK) {
        uLongf size = compressBound(b->used);
        packed = un_alloc(b->ctx, size, 1);
        status =
            packed && compress2(packed, &size, b->at, b->used, 9) == Z_OK ? UN_OK : UN_ERROR_MEMORY;
        if (status == UN_OK) un_view_add_base64(t, packed, size);
    }
    un_free(b->ctx, packed);
    un_free(b->ctx, b->at);
    return status == UN_OK ? t->status : status;
}

typedef struct frame_box {
    un_vec3 lo, hi;
    double speed; /* the fastest */
} frame_box;

static void put_box(bytes *b, const frame_box *f)
{
    float values[7] = {(float)f->lo.x, (float)f->lo.y, (float)f->lo.z, (float)f->hi.x,
                       (float)f->hi.y, (float)f->hi.z, (float)f->speed};
    put(b, values, sizeof values);
}

static void grow(frame_box *f, un_vec3 x, double speed, bool first)
{
    f->lo = first ? x : un_min3(f->lo, x);
    f->hi = first ? x : un_max3(f->hi, x);
    f->speed = first ? speed : fmax(f->speed, speed);
}

static int32_t quantise(double x, double lo, double hi)
{
    return hi > lo ? (int32_t)lround((x - lo) / (hi - lo) * 65535) : 0;
}

static double part_of(un_vec3 v, int axis)
{
    return axis == 0 ? v.x : axis == 1 ? v.y : v.z;
}

un_status un_view_pack_surface(un_text *t, const un_trimesh *m)
{
    bytes b = {.ctx = t->ctx};
    frame_box f = {0};
    uint32_t counts[2] = {(uint32_t)m->vertex_count, (uint32_t)m->triangle_count};
    for (int32_t v = 0; v < m->vertex_count; v++)
        grow(&f, m->position[v], m->velocity ? un_length(m->velocity[v]) : 0, v == 0);
    put(&b, counts, sizeof counts);
    put_box(&b, &f);
    for (int a = 0; a < 3; a++) {
        double lo = part_of(f.lo, a), hi = part_of(f.hi, a);
        for (int32_t v = 0, last = 0; v < m->vertex_count; v++) {
            int32_t q = quantise(part_of(m->position[v], a), lo, hi);
            put_signed(&b, q - last);
            last = q;
        }
    }
    for (int a = 0; a < 3; a++)
        for (int32_t v = 0; v < m->vertex_count; v++)
            put_byte(&b, m->normal ? (int)lround(127 * part_of(m->normal[v], a)) & 255 : 0);
    for (int32_t v = 0; v < m->vertex_count; v++) {
        double speed = m->velocity ? un_length(m->velocity[v]) : 0;
        put_byte(&b, f.speed > 0 ? (int)lround(255 * speed / f.speed) : 0);
    }
    for (int32_t k = 0, last = 0; k < 3 * m->triangle_count; k++) {
        int32_t v = m->triangle[k / 3][k % 3];
        put_signed(&b, v - last);
        last = v;
    }
    return finish(t, &b);
}

un_status un_view_pack_particles(un_text *t, const un_particles *p, int32_t most)
{
    bytes b = {.ctx = t->ctx};
    frame_box f = {0};
    int64_t count = un_min64(p->count, most);
    float radius_max = 0;
    for (int32_t i = 0; i < p->count; i++) {
        grow(&f, un_particle_position(p, i), un_length(un_particle_velocity(p, i)), i == 0);
        radius_max = fmaxf(radius_max, (float)un_particle_ball(p, i));
    }
    put(&b, &(uint32_t){(uint32_t)count}, sizeof(uint32_t));
    put_box(&b, &f);
    put(&b, &radius_max, sizeof radius_max);
    for (int a = 0; a < 3; a++) {
        double lo = part_of(f.lo, a), hi = part_of(f.hi, a);
        for (int64_t k = 0, last = 0; k < count; k++) {
            int64_t i = k * p->count / count;
            int32_t q = quantise(p->x[a][i], lo, hi);
            put_signed(&b, q - last);
            last = q;
        }
    }
    for (int64_t k = 0; k < count; k++) { /* in 32nds of a doubling below the largest */
        double r = un_particle_ball(p, k * p->count / count);
        double step = r > 0 ? 32 * log2((double)radius_max / r) : 255;
        put_byte(&b, (int)lround(un_clamp(step, 0, 255)));
    }
    for (int64_t k = 0; k < count; k++) {
        double speed = un_length(un_particle_velocity(p, k * p->count / count));
        put_byte(&b, f.speed > 0 ? (int)lround(255 * speed / f.speed) : 0);
    }
    return finish(t, &b);
}

/* ---- cells at the cut ---- */

un_cell_ranges un_view_ranges(const un_cells *cells)
{
    un_cell_ranges r = {{INT32_MAX, INT32_MIN}, {INFINITY, 0}, {INFINITY, -INFINITY}, 0};
    for (int64_t c = 0; c < cells->count; c++) {
        double size = un_cells_size(cells, c), speed = un_length(cells->velocity[c]);
        double p = cells->pressure[c];
        r.level[0] = cells->level[c] < r.level[0] ? cells->level[c] : r.level[0];
        r.level[1] = cells->level[c] > r.level[1] ? cells->level[c] : r.level[1];
        r.size[0] = fmin(r.size[0], size);
        r.size[1] = fmax(r.size[1], size);
        if (isfinite(p)) r.pressure[0] = fmin(r.pressure[0], p);
        if (isfinite(p)) r.pressure[1] = fmax(r.pressure[1], p);
        if (isfinite(speed)) r.speed = fmax(r.speed, speed);
    }
    if (cells->count == 0) r = (un_cell_ranges){0};
    if (!(r.pressure[1] >= r.pressure[0])) r.pressure[0] = r.pressure[1] = 0;
    return r;
}

/* Drops corners equal to the one before, and polygons with fewer than three left. */
static void drop_vanished(un_slice *s)
{
    int32_t polygons = 0, corners = 0;
    for (int32_t i = 0, begin = 0; i < s->count; i++) {
        int32_t end = s->first[i + 1], first = corners;
        for (int32_t k = begin; k < end; k++)
            if (corners == first || s->corner[corners - 1] != s->corner[k])
                s->corner[corners++] = s->corner[k];
        while (corners > first + 1 && s->corner[corners - 1] == s->corner[first]) corners--;
        begin = end;
        if (corners < first + 3) {
            corners = first;
            continue;
        }
        s->cell[polygons] = s->cell[i];
        s->first[++polygons] = corners;
    }
    s->count = polygons;
}

un_status un_view_simplify_cut(un_context *ctx, un_slice *s, int32_t axis, double width)
{
    if (!(width > 0) || s->point_count == 0) return UN_OK;
    clusters c = {.room = 16};
    int32_t *now = NULL;
    un_status status = UN_OK;
    while (c.room < 2 * (size_t)s->point_count) c.room *= 2;
    UN_ALLOC_DONE(ctx, c.items, s->point_count);
    UN_ALLOC_DONE(ctx, c.table, c.room);
    UN_ALLOC_DONE(ctx, now, s->point_count);
    memset(c.table, -1, c.room * sizeof *c.table);
    for (int32_t i = 0; i < s->point_count; i++) {
        int32_t at[3];
        for (int a = 0; a < 3; a++)
            at[a] = a == axis ? 0 : (int32_t)floor(part_of(s->point[i], a) / width);
        int32_t k = now[i] = find_cluster(&c, at);
        s->point[k] = c.items[k].count++ == 0 ? s->point[i] : un_add(s->point[k], s->point[i]);
    }
    for (int32_t k = 0; k < c.count; k++)
        s->point[k] = un_scale(s->point[k], 1.0 / c.items[k].count);
    for (int32_t k = 0; k < s->first[s->count]; k++) s->corner[k] = now[s->corner[k]];
    s->point_count = c.count;
    drop_vanished(s);
done:
    un_free(ctx, c.items);
    un_free(ctx, c.table);
    un_free(ctx, now);
    return status;
}

/* Counts, the plane, bounds and ranges; then by point its two coordinates in the plane; by polygon
 * its number of corners; the corners; by polygon level, size, speed and pressure. */
static void put_cut(bytes *b, const un_slice *s, int32_t axis, double at, const un_cells *cells,
                    const un_cell_ranges *r)
{
    uint32_t counts[3] = {(uint32_t)s->point_count, (uint32_t)s->count,
                          s->count > 0 ? (uint32_t)s->first[s->count] : 0};
    frame_box f = {.speed = r->speed};
    for (int32_t i = 0; i < s->point_count; i++) grow(&f, s->point[i], r->speed, i == 0);
    float values[5] = {(float)at, (float)r->size[0], (float)r->size[1], (float)r->pressure[0],
                       (float)r->pressure[1]};
    put(b, counts, sizeof counts);
    put_box(b, &f);
    put(b, values, sizeof values);
    put_signed(b, r->level[0]);
    put_signed(b, r->level[1]);
    for (int k = 1; k < 3; k++) {
        double lo = part_of(f.lo, (axis + k) % 3), hi = part_of(f.hi, (axis + k) % 3);
        for (int32_t i = 0, last = 0; i < s->point_count; i++) {
            int32_t q = quantise(part_of(s->point[i], (axis + k) % 3), lo, hi);
            put_signed(b, q - last);
            last = q;
        }
    }
    for (int32_t i = 0; i < s->count; i++) put_byte(b, s->first[i + 1] - s->first[i]);
    for (uint32_t k = 0; k < counts[2]; k++)
        put_signed(b, s->corner[k] - (k ? s->corner[k - 1] : 0));
    for (int32_t i = 0, last = 0; i < s->count; i++) {
        put_signed(b, cells->level[s->cell[i]] - last);
        last = cells->level[s->cell[i]];
    }
    for (int32_t i = 0; i < s->count; i++) { /* in 32nds of a doubling below the largest */
        double step = 32 * log2(r->size[1] / un_cells_size(cells, s->cell[i]));
        put_byte(b, (int)lround(un_clamp(step, 0, 255)));
    }
    for (int32_t i = 0; i < s->count; i++) {
        double speed = un_length(cells->velocity[s->cell[i]]);
        put_byte(b, speed > 0 && isfinite(speed) ? (int)lround(255 * speed / r->speed) : 0);
    }
    for (int64_t i = 0, last = 0; i < s->count; i++) {
        double p = cells->pressure[s->cell[i]], low = r->pressure[0], high = r->pressure[1];
        int64_t q = isfinite(p) ? quantise(p, low, high) / 64 : 0; /* a thousand steps are enough */
        put_signed(b, q - last);
        last = q;
    }
}

un_status un_view_encode_cut(un_context *ctx, const un_slice *slice, int32_t axis, double at,
                             const un_cells *cells, const un_cell_ranges *ranges, uint8_t **to,
                             size_t *size)
{
    bytes b = {.ctx = ctx};
    put_cut(&b, slice, axis, at, cells, ranges);
    if (b.status != UN_OK) un_free(ctx, b.at);
    *to = b.status == UN_OK ? b.at : NULL;
    *size = b.used;
    return b.status;
}

un_status un_view_pack_cut(un_text *t, const un_cells *cells, int32_t axis, double at, int32_t most)
{
    un_slice slice;
    un_cell_ranges ranges = un_view_ranges(cells);
    UN_TRY(un_cells_cut(t->ctx, &slice, cells, axis, at));
    un_status status = UN_OK;
    double width = 0.5 * ranges.size[0];
    for (int pass = 0; pass < 30 && slice.count > most && status == UN_OK; pass++) {
        status = un_view_simplify_cut(t->ctx, &slice, axis, width);
        width *= 1.25;
    }
    bytes b = {.ctx = t->ctx, .status = status};
    if (status == UN_OK) put_cut(&b, &slice, axis, at, cells, &ranges);
    un_slice_free(t->ctx, &slice);
    return finish(t, &b);
}
