/* Velocities on the faces of leaves beyond the liquid: layer by layer, the mean over the faces
 * around that have one. */
#include "transfer/transfer.h"

typedef struct extend_args {
    double *u, *w;
    uint8_t *known;
    const un_leaves *m;
    const int32_t *list; /* faces to be given a value */
    double *value[2];    /* of those; known[..] is set in the end */
    uint8_t *found;
    uint8_t *beside; /* by leaf: any of its faces is known */
} extend_args;

static void add_face(const extend_args *a, int32_t f, double sum[3])
{
    if (!a->known[f]) return;
    sum[0] += 1;
    sum[1] += a->u[f];
    if (a->w) sum[2] += a->w[f];
}

/* The faces of a leaf across an axis. */
static void add_leaf(const extend_args *a, int32_t c, int axis, double sum[3])
{
    const un_leaves *m = a->m;
    if (!a->beside[c]) return;
    for (int side = 2 * axis; side < 2 * axis + 2; side++) {
        int32_t f = m->side[c][side];
        if (f >= 0)
            add_face(a, f, sum);
        else
            for (int k = 0; k < un_leaves_group_size(m); k++) add_face(a, m->group[~f][k], sum);
    }
}

static void tell_leaves(const extend_args *a, int32_t f)
{
    a->beside[a->m->face_side[f] / 6] = 1;
    if (a->m->face_other[f] >= 0) a->beside[a->m->face_other[f]] = 1;
}

static void extend_faces(void *arg, int64_t begin, int64_t end)
{
    static const int step[3] = {1, 3, 9};
    const extend_args *a = arg;
    const un_leaves *m = a->m;
    for (int64_t n = begin; n < end; n++) {
        int32_t f = a->list[n], leaf[2] = {m->face_side[f] / 6, m->face_other[f]};
        int axis = un_leaf_face_axis(m, f);
        double sum[3] = {0};
        for (int k = 0; k < 2 && leaf[k] >= 0; k++) {
            const int32_t *near = un_leaf_near(m, leaf[k]);
            add_leaf(a, leaf[k], axis, sum);
            for (int t = 0; t < 2 * m->dim; t++) {
                if (t / 2 == axis) continue;
                int32_t c = near[m->near_count / 2 + (t & 1 ? step[t / 2] : -step[t / 2])];
                if (c >= 0) add_leaf(a, c, axis, sum);
            }
        }
        a->found[n] = sum[0] > 0;
        if (!a->found[n]) continue;
        a->value[0][n] = sum[1] / sum[0];
        if (a->w) a->value[1][n] = sum[2] / sum[0];
    }
}

/* What has been found for the list takes its place; the rest of the list stays. */
static int32_t take_found(const extend_args *a, int32_t *list, int32_t count, int32_t layer)
{
    int32_t left = 0;
    for (int32_t n = 0; n < count; n++) {
        int32_t f = list[n];
        if (!a->found[n]) {
            list[left++] = f;
            continue;
        }
        a->u[f] = a->value[0][n];
        if (a->w) a->w[f] = a->value[1][n];
        a->known[f] = (uint8_t)(layer + 2);
        tell_leaves(a, f);
    }
    return left;
}

/* What is farther away is air. */
static void clear_rest(const extend_args *a, const int32_t *list, int32_t count)
{
    for (int32_t n = 0; n < count; n++) {
        a->u[list[n]] = 0;
        if (a->w) a->w[list[n]] = 0;
    }
}

/* A rank that knows some of the faces finds its own, and hears of the others. */
static void extend_in_parts(un_context *ctx, extend_args *a, int32_t *list, int32_t count,
                            int32_t *other, int32_t layers)
{
    const un_leaves *m = a->m;
    un_part own = un_leaves_own_faces(m);
    int32_t mine = 0, others = 0;
    for (int32_t n = 0; n < count; n++) {
        if (list[n] >= own.begin && list[n] < own.end)
            list[mine++] = list[n];
        else
            other[others++] = list[n];
    }
    for (int32_t layer = 0; layer < layers; layer++) {
        un_parallel_for(ctx, mine, 2048, extend_faces, a);
        mine = take_found(a, list, mine, layer);
        un_leaves_spread_faces(m, a->known, 1);
        un_leaves_spread_faces(m, a->u, sizeof *a->u);
        if (a->w) un_leaves_spread_faces(m, a->w, sizeof *a->w);
        int32_t left = 0;
        for (int32_t n = 0; n < others; n++) {
            if (a->known[other[n]])
                tell_leaves(a, other[n]);
            else
                other[left++] = other[n];
        }
        others = left;
    }
    clear_rest(a, list, mine);
    clear_rest(a, other, others);
}

un_status un_transfer_extrapolate_leaves(un_context *ctx, un_arena *arena, double *u, double *w,
                                         uint8_t *known, const un_leaves *m, int32_t layers)
{
    extend_args a = {.u = u, .w = w, .known = known, .m = m};
    int32_t *list = un_arena_alloc(arena, (size_t)m->face_count + 1, sizeof *list);
    a.found = un_arena_alloc(arena, (size_t)m->face_count + 1, 1);
    for (int k = 0; k < 2; k++)
        a.value[k] = un_arena_alloc(arena, (size_t)m->face_count + 1, sizeof **a.value);
    a.beside = un_arena_alloc(arena, (size_t)m->count + 1, 1);
    bool able = list && a.found && a.value[0] && a.value[1] && a.beside;
    int32_t *other = list;
    if (un_leaves_in_parts(m)) {
        other = un_arena_alloc(arena, (size_t)m->face_count + 1, sizeof *other);
        able = able && other;
    }
    UN_TRY(un_leaves_agree(m, able ? UN_OK : UN_ERROR_MEMORY));
    memset(a.beside, 0, (size_t)m->count);
    int32_t count = 0;
    for (int32_t k = 0; k < un_leaves_runs(m); k++)
        for (int64_t f = un_leaves_face_run(m, k).begin; f < un_leaves_face_run(m, k).end; f++) {
            if (known[f])
                tell_leaves(&a, (int32_t)f);
            else
                list[count++] = (int32_t)f;
        }
    a.list = list;
    if (un_leaves_in_parts(m)) {
        extend_in_parts(ctx, &a, list, count, other, layers);
        return UN_OK;
    }
    for (int32_t layer = 0; layer < layers; layer++) {
        un_parallel_for(ctx, count, 2048, extend_faces, &a);
        count = take_found(&a, list, count, layer);
    }
    clear_rest(&a, list, count);
    return UN_OK;
}
