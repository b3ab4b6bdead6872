/* The step's change of velocities at tets and nodes. */
#include "transfer/transfer.h"

typedef struct change_args {
    un_vec3 *out;
    const un_vec3 *u, *was;
    const uint8_t *known;
    un_vec3 all;
} change_args;

typedef struct difference_args {
    double *other;
    const double *u;
} difference_args;

static void find_difference(void *arg, int64_t begin, int64_t end)
{
    const difference_args *a = arg;
    for (int64_t f = begin; f < end; f++) a->other[f] = a->u[f] - a->other[f];
}

void un_transfer_difference(un_context *ctx, double *other, const double *u, int64_t count)
{
    difference_args a = {other, u};
    un_parallel_for(ctx, count, 4096, find_difference, &a);
}

void un_transfer_difference_leaves(double *other, const double *u, const un_leaves *leaves)
{
    difference_args a = {other, u};
    un_leaves_each_face(leaves, 4096, find_difference, &a);
}

static void add_all(void *arg, int64_t begin, int64_t end)
{
    change_args *a = arg;
    for (int64_t t = begin; t < end; t++) a->out[t] = un_add(a->out[t], a->all);
}

void un_transfer_add(un_context *ctx, un_vec3 *u, int64_t count, un_vec3 change)
{
    change_args a = {.out = u, .all = change};
    un_parallel_for(ctx, count, 4096, add_all, &a);
}

static void find_change(void *arg, int64_t begin, int64_t end)
{
    change_args *a = arg;
    for (int64_t t = begin; t < end; t++)
        a->out[t] = a->known[t] == 1 ? un_sub(a->u[t], a->was[t]) : un_v3(0, 0, 0);
}

void un_transfer_change(un_context *ctx, un_vec3 *change, const un_vec3 *u, const un_vec3 *was,
                        const uint8_t *known, int64_t count)
{
    change_args a = {.out = change, .u = u, .was = was, .known = known};
    un_parallel_for(ctx, count, 4096, find_change, &a);
}

static void add_change(void *arg, int64_t begin, int64_t end)
{
    change_args *a = arg;
    for (int64_t n = begin; n < end; n++)
        if (a->known[n]) a->out[n] = un_add(a->out[n], a->u[n]);
}

void un_transfer_add_change(un_context *ctx, un_vec3 *u, const un_vec3 *change,
                            const uint8_t *known, int64_t count)
{
    change_args a = {.out = u, .u = change, .known = known};
    un_parallel_for(ctx, count, 4096, add_change, &a);
}
