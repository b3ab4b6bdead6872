#include "mesh/faces.h"

void un_faces_free(un_context *ctx, un_faces *faces)
{
    un_free(ctx, faces->corner);
    un_free(ctx, faces->other);
    un_free(ctx, faces->of_tet);
    *faces = (un_faces){0};
}

typedef struct number_args {
    un_faces *faces;
    const un_tets *mesh;
    const int32_t *behind; /* from un_tets_adjacency */
    int32_t *first;        /* by tet: the number of its first own face */
} number_args;

static bool owns(const int32_t *behind, int64_t t, int i)
{
    int32_t other = behind[4 * t + i];
    return other < 0 || other > t;
}

static void count_own(void *arg, int64_t begin, int64_t end)
{
    number_args *a = arg;
    for (int64_t t = begin; t < end; t++) {
        int32_t count = 0;
        for (int i = 0; i < 4; i++) count += owns(a->behind, t, i);
        a->first[t + 1] = count;
    }
}

static void fill_own(void *arg, int64_t begin, int64_t end)
{
    number_args *a = arg;
    for (int64_t t = begin; t < end; t++) {
        int32_t f = a->first[t];
        for (int i = 0; i < 4; i++) {
            if (!owns(a->behind, t, i)) continue;
            a->faces->corner[f] = (int32_t)(4 * t + i);
            a->faces->other[f] = a->behind[4 * t + i];
            a->faces->of_tet[t][i] = f++;
        }
    }
}

/* The other faces: the owner's face that leads back to this tet. Two tets share one face. */
static void fill_others(void *arg, int64_t begin, int64_t end)
{
    number_args *a = arg;
    for (int64_t t = begin; t < end; t++)
        for (int i = 0; i < 4; i++) {
            int32_t other = a->behind[4 * t + i];
            if (owns(a->behind, t, i)) continue;
            for (int k = 0; k < 4; k++)
                if (a->behind[4 * (int64_t)other + k] == t)
                    a->faces->of_tet[t][i] = a->faces->of_tet[other][k];
        }
}

un_status un_faces_number(un_context *ctx, un_arena *arena, un_faces *faces, const un_tets *mesh)
{
    size_t tets = (size_t)mesh->tet_count;
    int32_t *behind = un_arena_alloc(arena, 4 * tets + 1, sizeof *behind);
    number_args a = {faces, mesh, behind, un_arena_alloc(arena, tets + 1, sizeof *a.first)};
    if (!behind || !a.first) return UN_ERROR_MEMORY;
    UN_TRY(un_tets_adjacency(mesh, arena, behind));
    un_parallel_for(ctx, mesh->tet_count, 8192, count_own, &a);
    a.first[0] = 0;
    for (size_t t = 0; t < tets; t++) a.first[t + 1] += a.first[t];
    faces->count = a.first[tets];
    size_t count = (size_t)faces->count + 1;
    UN_TRY(un_array_need(ctx, (void **)&faces->corner, &faces->capacity[0], count,
                         sizeof *faces->corner));
    UN_TRY(un_array_need(ctx, (void **)&faces->other, &faces->capacity[1], count,
                         sizeof *faces->other));
    UN_TRY(un_array_need(ctx, (void **)&faces->of_tet, &faces->capacity[2], tets + 1,
                         sizeof *faces->of_tet));
    un_parallel_for(ctx, mesh->tet_count, 8192, fill_own, &a);
    un_parallel_for(ctx, mesh->tet_count, 8192, fill_others, &a);
    return UN_OK;
}
