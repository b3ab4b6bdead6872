/* Surfaces, particles and cuts made small enough to send along in a page. */
#include "view/view.h"

#include <stdlib.h>
#include <zlib.h>

/* ---- fewer triangles: vertices of one cell become one [Rossignac and Borrel 1993] ---- */

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
        /* k <= v: the sums take the place of vertices already read */
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

typedef struct square {
    int64_t at[3]; /* lower corner, in widths of the smallest cell */
    int32_t width; /* in the same */
    int32_t level;
    double speed, pressure;
} square;

static int compare_squares(const void *a, const void *b)
{
    const square *p = a, *q = b;
    for (int i = 2; i >= 0; i--)
        if (p->at[i] != q->at[i]) return p->at[i] < q->at[i] ? -1 : 1;
    return 0;
}

/* All cells up to this width become those of twice the width that hold them. */
static int64_t join_smallest(square *squares, int64_t count)
{
    int32_t least = INT32_MAX;
    for (int64_t i = 0; i < count; i++) least = squares[i].width < least ? squares[i].width : least;
    if (least > INT32_MAX / 4) return count;
    for (int64_t i = 0; i < count; i++) {
        square *s = &squares[i];
        if (s->width != least) continue;
        s->width *= 2;
        s->level--;
        for (int a = 0; a < 3; a++) s->at[a] -= (s->at[a] % s->width + s->width) % s->width;
    }
    qsort(squares, (size_t)count, sizeof *squares, compare_squares);
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (kept == 0 || compare_squares(&squares[kept - 1], &squares[i]) != 0)
            squares[kept++] = squares[i];
    return kept;
}

static bool is_cut(const un_cells *cells, int64_t c, un_vec3 domain)
{
    for (int a = 0; a < 3; a++) {
        double at = un_view_middle(domain, a), min = part_of(cells->min[c], a);
        if (min <= at && at < min + cells->size[c]) return true;
    }
    return false;
}

static void put_squares(bytes *b, const square *squares, int64_t count, double unit)
{
    double speed = 0, low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        speed = fmax(speed, squares[i].speed);
        low = fmin(low, squares[i].pressure);
        high = fmax(high, squares[i].pressure);
    }
    if (!(high >= low)) low = high = 0;
    float values[4] = {(float)unit, (float)speed, (float)low, (float)high};
    put(b, &(uint32_t){(uint32_t)count}, sizeof(uint32_t));
    put(b, values, sizeof values);
    for (int a = 0; a < 3; a++)
        for (int64_t i = 0; i < count; i++)
            put_signed(b, squares[i].at[a] - (i ? squares[i - 1].at[a] : 0));
    for (int64_t i = 0; i < count; i++)
        put_signed(b, squares[i].width - (i ? squares[i - 1].width : 0));
    for (int64_t i = 0; i < count; i++)
        put_signed(b, squares[i].level - (i ? squares[i - 1].level : 0));
    for (int64_t i = 0; i < count; i++)
        put_byte(b, speed > 0 ? (int)lround(255 * squares[i].speed / speed) : 0);
    for (int64_t i = 0, last = 0; i < count; i++) {
        int64_t q = quantise(squares[i].pressure, low, high) / 64; /* a thousand steps will do */
        put_signed(b, q - last);
        last = q;
    }
}

un_status un_view_pack_cells(un_text *t, const un_cells *cells, un_vec3 domain, int32_t most)
{
    bytes b = {.ctx = t->ctx};
    square *squares = NULL;
    int64_t count = 0;
    double unit = INFINITY;
    UN_ALLOC(t->ctx, squares, cells->count + 1);
    for (int64_t c = 0; c < cells->count; c++)
        if (cells->size[c] > 0) unit = fmin(unit, cells->size[c]);
    for (int64_t c = 0; c < cells->count; c++) {
        un_vec3 min = cells->min[c];
        double speed = un_length(cells->velocity[c]), pressure = cells->pressure[c];
        double width = round(cells->size[c] / unit);
        double far = fmax(fabs(min.x), fmax(fabs(min.y), fabs(min.z))) / unit;
        if (!(width >= 1 && width < 1e6 && far < 1e9) || !is_cut(cells, c, domain)) continue;
        squares[count++] = (square){
            .at = {llround(min.x / unit), llround(min.y / unit), llround(min.z / unit)},
            .width = (int32_t)width,
            .level = cells->level[c],
            .speed = isfinite(speed) ? speed : 0,
            .pressure = isfinite(pressure) ? pressure : 0,
        };
    }
    for (int pass = 0; pass < 30 && count > most; pass++) count = join_smallest(squares, count);
    put_squares(&b, squares, count, isfinite(unit) ? unit : 1);
    un_free(t->ctx, squares);
    return finish(t, &b);
}
