/* Velocities of viscous liquid at the faces of leaves themselves, as face_centres.c has it for the
 * grid: the mean over the particles around a face is that of their centre. It is moved to the face
 * along the gradient that fits the means of the faces around it best, each taken at its own
 * centre. */
#include "linalg/linalg.h"
#include "transfer/transfer.h"

/* What is left of a direction's weight in the fit once the others are known, at least. */
#define APART 0.1

typedef struct centre_args {
    const un_leaves *m;
    double *u;
    const uint8_t *known;
    const float (*centre)[4]; /* at faces: as in un_leaf_gather */
    double *moved;            /* at faces */
} centre_args;

/* What a fit is made of, in edges of the face's own leaf. */
typedef struct fit_sums {
    un_vec3 x;
    double u, inverse;
    double own[3];
    double fit[9], sum[3];
} fit_sums;

static void add_face(const centre_args *a, fit_sums *s, int32_t g, int32_t f)
{
    const un_leaves *m = a->m;
    int dim = m->dim;
    if (g == f || a->known[g] != 1 || !(a->centre[g][3] > 0)) return;
    double size = un_leaf_face_size(m, g) * s->inverse, w = a->centre[g][3], apart[3];
    un_vec3 way = un_scale(un_sub(un_leaf_face_center(m, g), s->x), s->inverse);
    for (int d = 0; d < dim; d++)
        apart[d] = un_vec3_at(way, d) + size * (double)a->centre[g][d] - s->own[d];
    for (int d = 0; d < dim; d++) {
        s->sum[d] += w * apart[d] * (a->u[g] - s->u);
        for (int e = 0; e < dim; e++) s->fit[dim * d + e] += w * apart[d] * apart[e];
    }
}

static void add_leaf(const centre_args *a, fit_sums *s, int32_t c, int axis, int32_t f)
{
    const un_leaves *m = a->m;
    for (int side = 2 * axis; side < 2 * axis + 2; side++) {
        int32_t g = m->side[c][side];
        if (g >= 0)
            add_face(a, s, g, f);
        else
            for (int k = 0; k < un_leaves_group_size(m); k++) add_face(a, s, m->group[~g][k], f);
    }
}

/* Faces beside it are met from both of its leaves, those beyond these once. */
static void move_faces(void *arg, int64_t begin, int64_t end)
{
    static const int step[3] = {1, 3, 9};
    const centre_args *a = arg;
    const un_leaves *m = a->m;
    int dim = m->dim;
    for (int64_t f = begin; f < end; f++) {
        a->moved[f] = a->u[f];
        if (a->known[f] != 1 || !(a->centre[f][3] > 0)) continue;
        int32_t leaf[2] = {m->face_side[f] / 6, m->face_other[f]};
        int axis = un_leaf_face_axis(m, f);
        fit_sums s = {
            .x = un_leaf_face_center(m, f), .u = a->u[f], .inverse = 1 / un_leaf_face_size(m, f)};
        for (int d = 0; d < dim; d++) s.own[d] = a->centre[f][d];
        for (int k = 0; k < 2 && leaf[k] >= 0; k++) {
            const int32_t *near = un_leaf_near(m, leaf[k]);
            add_leaf(a, &s, leaf[k], axis, (int32_t)f);
            for (int t = 0; t < 2 * dim; t++) {
                if (t / 2 == axis) continue;
                int32_t c = near[m->near_count / 2 + (t & 1 ? step[t / 2] : -step[t / 2])];
                if (c >= 0) add_leaf(a, &s, c, axis, (int32_t)f);
            }
        }
        un_small_inverse(s.fit, dim, APART);
        for (int d = 0; d < dim; d++)
            for (int e = 0; e < dim; e++) a->moved[f] -= s.own[d] * s.fit[dim * d + e] * s.sum[e];
    }
}

static void take_moved(void *arg, int64_t begin, int64_t end)
{
    const centre_args *a = arg;
    memcpy(a->u + begin, a->moved + begin, (size_t)(end - begin) * sizeof *a->u);
}

un_status un_transfer_move_to_leaf_faces(un_context *ctx, un_arena *arena, double *u,
                                         const uint8_t *known, const float (*centre)[4],
                                         const un_leaves *leaves)
{
    centre_args a = {.m = leaves, .u = u, .known = known, .centre = centre};
    a.moved = un_arena_alloc(arena, (size_t)leaves->face_count + 1, sizeof *a.moved);
    UN_TRY(un_leaves_agree(leaves, a.moved ? UN_OK : UN_ERROR_MEMORY));
    un_parallel_part(ctx, un_leaves_own_faces(leaves), 1024, move_faces, &a);
    un_leaves_spread_faces(leaves, a.moved, sizeof *a.moved);
    un_leaves_each_face(leaves, 4096, take_moved, &a);
    un_arena_reset(arena);
    return UN_OK;
}
