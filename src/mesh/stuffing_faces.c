/* Faces and incidence.
 *
 * Tets follow the leaves along the Morton curve, so most faces have both tets in one block of them.
 * Each block matches its faces in a small table of its own; what is left over, along the borders of
 * blocks and in the boundary, is sorted by its lowest node and matched there. */
#include "mesh/stuffing_internal.h"

#define BLOCK 1024
#define SLOTS (8 * BLOCK) /* twice the faces of a block */

typedef struct match_args {
    un_stuffing_work *w;
    un_stuffing *mesh;
    int32_t *behind; /* by corner 4 t + i: the corner of the other tet, -1 none */
    int32_t *count;  /* by block: faces left over; then their first place */
    uint32_t *lowest;
    int32_t *left, *order;
    int64_t left_count;
    int32_t *first_face; /* by tet, and one more: its own faces */
    int32_t *first_boundary;
} match_args;

/* The nodes of the face opposite corner i, ascending. */
static inline void face_key(const int32_t n[4], int i, int32_t key[3])
{
    int32_t a = n[(i + 1) & 3], b = n[(i + 2) & 3], c = n[(i + 3) & 3], low = a < b ? a : b,
            high = a < b ? b : a;
    key[0] = c < low ? c : low;
    key[2] = c > high ? c : high;
    key[1] = c < low ? low : c > high ? high : c;
}

typedef struct slot {
    int32_t key[3], corner;
} slot;

static void match_blocks(void *arg, int64_t begin, int64_t end)
{
    match_args *a = arg;
    const un_stuffing *mesh = a->mesh;
    slot table[SLOTS];
    for (int64_t block = begin; block < end; block++) {
        int64_t from = BLOCK * block, to = un_min64(from + BLOCK, mesh->tet_count), left = 0;
        for (int32_t s = 0; s < SLOTS; s++) table[s].corner = -1;
        for (int64_t t = from; t < to; t++)
            for (int i = 0; i < 4; i++) {
                int32_t key[3], corner = (int32_t)(4 * t + i);
                face_key(mesh->tet[t], i, key);
                uint32_t at = (uint32_t)key[0] * 0x9e3779b1u ^ (uint32_t)key[1] * 0x85ebca6bu ^
                              (uint32_t)key[2] * 0xc2b2ae35u;
                at ^= at >> 15;
                a->behind[corner] = -1;
                for (at &= SLOTS - 1;; at = (at + 1) & (SLOTS - 1)) {
                    slot *s = &table[at];
                    if (s->corner < 0) {
                        *s = (slot){{key[0], key[1], key[2]}, corner};
                        left++;
                        break;
                    }
                    if (s->key[0] != key[0] || s->key[1] != key[1] || s->key[2] != key[2] ||
                        a->behind[s->corner] >= 0)
                        continue;
                    a->behind[corner] = s->corner;
                    a->behind[s->corner] = corner;
                    left--;
                    break;
                }
            }
        a->count[block] = (int32_t)left;
    }
}

static void list_left(void *arg, int64_t begin, int64_t end)
{
    match_args *a = arg;
    for (int64_t block = begin; block < end; block++) {
        int64_t from = 4 * BLOCK * block,
                to = un_min64(from + 4 * BLOCK, 4 * (int64_t)a->mesh->tet_count);
        int32_t k = a->count[block];
        for (int64_t corner = from; corner < to; corner++) {
            if (a->behind[corner] >= 0) continue;
            int32_t key[3];
            face_key(a->mesh->tet[corner / 4], (int)(corner & 3), key);
            a->lowest[k] = (uint32_t)key[0];
            a->left[k++] = (int32_t)corner;
        }
    }
}

/* Faces with the same lowest node follow each other; the block that holds their first one matches
 * them. */
static void match_left(void *arg, int64_t begin, int64_t end)
{
    match_args *a = arg;
    const un_stuffing *mesh = a->mesh;
    for (int64_t k = begin, next; k < a->left_count; k = next) {
        uint32_t low = a->lowest[a->order[k]];
        next = k + 1;
        while (next < a->left_count && a->lowest[a->order[next]] == low) next++;
        if (k == begin && k > 0 && a->lowest[a->order[k - 1]] == low) continue;
        if (k >= end) return;
        for (int64_t i = k; i < next; i++) {
            int32_t c = a->left[a->order[i]], key[3], other[3];
            if (a->behind[c] >= 0) continue;
            face_key(mesh->tet[c / 4], c & 3, key);
            for (int64_t j = i + 1; j < next; j++) {
                int32_t d = a->left[a->order[j]];
                face_key(mesh->tet[d / 4], d & 3, other);
                if (a->behind[d] >= 0 || other[1] != key[1] || other[2] != key[2]) continue;
                a->behind[c] = d;
                a->behind[d] = c;
                break;
            }
        }
    }
}

static int32_t bits_for(int64_t count)
{
    int32_t bits = 1;
    while ((int64_t)1 << bits < count) bits++;
    return bits;
}

static un_status match_faces(match_args *a)
{
    un_context *ctx = a->mesh->ctx;
    un_arena *arena = a->w->arena;
    int64_t tets = a->mesh->tet_count, blocks = (tets + BLOCK - 1) / BLOCK;
    a->behind = un_arena_alloc(arena, 4 * (size_t)tets + 1, sizeof *a->behind);
    a->count = un_arena_alloc(arena, (size_t)blocks + 1, sizeof *a->count);
    if (!a->behind || !a->count) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, blocks, 1, match_blocks, a);
    a->left_count = un_parallel_scan(ctx, a->count, blocks);
    size_t room = (size_t)a->left_count + 1;
    a->lowest = un_arena_alloc(arena, room, sizeof *a->lowest);
    a->left = un_arena_alloc(arena, room, sizeof *a->left);
    a->order = un_arena_alloc(arena, room, sizeof *a->order);
    if (!a->lowest || !a->left || !a->order) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, blocks, 4, list_left, a);
    UN_TRY(un_parallel_sort(ctx, arena, a->order, a->lowest, a->left_count,
                            bits_for(a->mesh->node_count)));
    un_parallel_for(ctx, a->left_count, 4096, match_left, a);
    return UN_OK;
}

/* ---- numbering ---- */

static bool owns(const match_args *a, int64_t corner)
{
    return a->behind[corner] < 0 || a->behind[corner] > corner;
}

static void count_own(void *arg, int64_t begin, int64_t end)
{
    match_args *a = arg;
    for (int64_t t = begin; t < end; t++) {
        int32_t own = 0, boundary = 0;
        for (int64_t c = 4 * t; c < 4 * t + 4; c++) {
            own += owns(a, c);
            boundary += a->behind[c] < 0;
        }
        a->first_face[t] = own;
        a->first_boundary[t] = boundary;
    }
}

/* The side that a face of a chamfer between sides belongs to: the one most of its nodes lie on. */
static uint8_t side_of(const int on[3])
{
    int best = 0, most = 0;
    for (int side = 0; side < 6; side++) {
        int count = 0;
        for (int i = 0; i < 3; i++) count += on[i] >> side & UN_ON_SIDE ? 1 : 0;
        if (count > most) most = count, best = side;
    }
    return (uint8_t)(UN_BEHIND_SIDE + best);
}

/* What a face with one tet borders on: the side or wall that all of its nodes lie on. Along creases
 * there may be none in common; then it is air if a node lies on the liquid's surface, or if that is
 * nearer than a wall, and a side if no node lies on a solid. */
static uint8_t behind_of(const match_args *a, const int32_t n[3], un_vec3 center, double h)
{
    const un_stuffing_work *w = a->w;
    const uint8_t *of = a->mesh->on;
    int on[3] = {of[n[0]], of[n[1]], of[n[2]]};
    int all = on[0] & on[1] & on[2], any = on[0] | on[1] | on[2];
    for (int side = 0; side < 6; side++)
        if (all & UN_ON_SIDE << side) return (uint8_t)(UN_BEHIND_SIDE + side);
    if (all & UN_ON_WALL) return UN_BEHIND_WALL;
    if (any & UN_ON_SURFACE) return UN_BEHIND_AIR;
    double liquid, solid = INFINITY;
    w->def->field(w->def->arg, 1, &center, &liquid, w->def->solids ? &solid : NULL);
    if (liquid > -0.5 * h) return UN_BEHIND_AIR;
    return any & UN_ON_WALL ? UN_BEHIND_WALL : side_of(on);
}

static void fill_faces(void *arg, int64_t begin, int64_t end)
{
    match_args *a = arg;
    un_stuffing *mesh = a->mesh;
    for (int64_t t = begin; t < end; t++) {
        int32_t f = a->first_face[t], b = a->first_boundary[t];
        for (int i = 0; i < 4; i++) {
            int64_t corner = 4 * t + i;
            if (!owns(a, corner)) continue;
            /* Outside is where an even permutation of the corners puts the opposite node below. */
            static const uint8_t turn[4][3] = {{1, 2, 3}, {0, 3, 2}, {0, 1, 3}, {0, 2, 1}};
            int32_t n[3], other = a->behind[corner];
            for (int k = 0; k < 3; k++) n[k] = mesh->tet[t][turn[i][k]];
            un_vec3 p = mesh->x[n[0]], q = mesh->x[n[1]], r = mesh->x[n[2]];
            memcpy(mesh->face[f], n, sizeof n);
            mesh->area[f] = un_scale(un_cross(un_sub(q, p), un_sub(r, p)), 0.5);
            mesh->center[f] = un_scale(un_add(un_add(p, q), r), 1.0 / 3);
            mesh->face_tet[f][0] = (int32_t)t;
            mesh->face_tet[f][1] = other < 0 ? -1 : other / 4;
            mesh->face_behind[f] =
                other < 0
                    ? behind_of(a, n, mesh->center[f], un_octree_size(&mesh->tree, mesh->level[t]))
                    : (uint8_t)UN_BEHIND_TET;
            if (other < 0) mesh->boundary[b++] = f;
            mesh->tet_face[t][i] = f++;
        }
    }
}

static void fill_others(void *arg, int64_t begin, int64_t end)
{
    match_args *a = arg;
    for (int64_t t = begin; t < end; t++)
        for (int i = 0; i < 4; i++) {
            int32_t other = a->behind[4 * t + i];
            if (!owns(a, 4 * t + i))
                a->mesh->tet_face[t][i] = a->mesh->tet_face[other / 4][other & 3];
        }
}

static un_status reserve_faces(un_stuffing *mesh)
{
    un_context *ctx = mesh->ctx;
    size_t *room = mesh->capacity + 10, faces = (size_t)mesh->face_count + 1,
           tets = (size_t)mesh->tet_count + 1;
    UN_TRY(un_array_need(ctx, (void **)&mesh->face, &room[0], faces, sizeof *mesh->face));
    UN_TRY(un_array_need(ctx, (void **)&mesh->face_tet, &room[1], faces, sizeof *mesh->face_tet));
    UN_TRY(un_array_need(ctx, (void **)&mesh->face_behind, &room[2], faces,
                         sizeof *mesh->face_behind));
    UN_TRY(un_array_need(ctx, (void **)&mesh->area, &room[3], faces, sizeof *mesh->area));
    UN_TRY(un_array_need(ctx, (void **)&mesh->center, &room[4], faces, sizeof *mesh->center));
    UN_TRY(un_array_need(ctx, (void **)&mesh->tet_face, &room[5], tets, sizeof *mesh->tet_face));
    return un_array_need(ctx, (void **)&mesh->boundary, &room[6], (size_t)mesh->boundary_count + 1,
                         sizeof *mesh->boundary);
}

static const un_box3 empty_box = {{INFINITY, INFINITY, INFINITY},
                                  {-INFINITY, -INFINITY, -INFINITY}};

static void box_rim(void *arg, int64_t begin, int64_t end)
{
    un_stuffing *mesh = arg;
    int32_t width = un_stuffing_rim_width(mesh);
    for (int64_t r = begin; r < end; r++) {
        un_box3 box = empty_box;
        for (int32_t b = mesh->rim_first[r]; b < mesh->rim_first[r + 1]; b++)
            for (int k = 0; k < 3; k++) {
                un_vec3 x = mesh->x[mesh->face[mesh->boundary[b]][k]];
                box.min = un_min3(box.min, x);
                box.max = un_max3(box.max, x);
            }
        mesh->rim_box[width + r] = box;
    }
}

static void join_boxes(un_stuffing *mesh)
{
    int32_t width = un_stuffing_rim_width(mesh);
    for (int32_t i = width + mesh->rim_count; i < 2 * width; i++) mesh->rim_box[i] = empty_box;
    for (int32_t i = width - 1; i > 0; i--) {
        un_box3 a = mesh->rim_box[2 * i], b = mesh->rim_box[2 * i + 1];
        mesh->rim_box[i] = (un_box3){un_min3(a.min, b.min), un_max3(a.max, b.max)};
    }
}

/* Leaves whose tets have faces in the boundary. */
static un_status list_rim(un_stuffing *mesh)
{
    un_context *ctx = mesh->ctx;
    size_t room = (size_t)mesh->boundary_count + 1, *capacity = mesh->capacity + 19;
    UN_TRY(un_array_need(ctx, (void **)&mesh->rim, &capacity[0], room, sizeof *mesh->rim));
    UN_TRY(
        un_array_need(ctx, (void **)&mesh->rim_first, &capacity[1], room, sizeof *mesh->rim_first));
    mesh->rim_count = 0;
    for (int32_t b = 0; b < mesh->boundary_count; b++) {
        int32_t leaf = mesh->leaf[mesh->face_tet[mesh->boundary[b]][0]];
        if (mesh->rim_count > 0 && mesh->rim[mesh->rim_count - 1] == leaf) continue;
        mesh->rim_first[mesh->rim_count] = b;
        mesh->rim[mesh->rim_count++] = leaf;
    }
    mesh->rim_first[mesh->rim_count] = mesh->boundary_count;
    UN_TRY(un_array_need(ctx, (void **)&mesh->rim_box, &capacity[2],
                         2 * (size_t)un_stuffing_rim_width(mesh), sizeof *mesh->rim_box));
    un_parallel_for(ctx, mesh->rim_count, 1024, box_rim, mesh);
    join_boxes(mesh);
    return UN_OK;
}

un_status un_stuffing_number_faces(un_stuffing_work *w)
{
    un_stuffing *mesh = w->mesh;
    un_context *ctx = mesh->ctx;
    int64_t tets = mesh->tet_count;
    match_args a = {.w = w, .mesh = mesh};
    UN_TRY(match_faces(&a));
    a.first_face = un_arena_alloc(w->arena, (size_t)tets + 1, sizeof *a.first_face);
    a.first_boundary = un_arena_alloc(w->arena, (size_t)tets + 1, sizeof *a.first_boundary);
    if (!a.first_face || !a.first_boundary) return UN_ERROR_MEMORY;
    un_parallel_for(ctx, tets, 8192, count_own, &a);
    mesh->face_count = (int32_t)un_parallel_scan(ctx, a.first_face, tets);
    mesh->boundary_count = (int32_t)un_parallel_scan(ctx, a.first_boundary, tets);
    UN_TRY(reserve_faces(mesh));
    un_parallel_for(ctx, tets, 2048, fill_faces, &a);
    un_parallel_for(ctx, tets, 8192, fill_others, &a);
    return list_rim(mesh);
}

/* ---- incidence ---- */

typedef struct incidence_args {
    un_stuffing *mesh;
    uint32_t *node; /* by corner */
} incidence_args;

static void list_corners(void *arg, int64_t begin, int64_t end)
{
    incidence_args *a = arg;
    for (int64_t c = begin; c < end; c++) a->node[c] = (uint32_t)a->mesh->tet[c / 4][c & 3];
}

static void find_first(void *arg, int64_t begin, int64_t end)
{
    incidence_args *a = arg;
    un_stuffing *mesh = a->mesh;
    for (int64_t k = begin; k < end; k++) {
        int64_t from = -1, to = a->node[mesh->corner[k]];
        if (k > 0) from = a->node[mesh->corner[k - 1]];
        for (int64_t n = from + 1; n <= to; n++) mesh->first[n] = (int32_t)k;
    }
}

un_status un_stuffing_incidence(const un_stuffing_work *w)
{
    un_stuffing *mesh = w->mesh;
    un_context *ctx = mesh->ctx;
    int64_t corners = 4 * (int64_t)mesh->tet_count;
    incidence_args a = {mesh, un_arena_alloc(w->arena, (size_t)corners + 1, sizeof *a.node)};
    if (!a.node) return UN_ERROR_MEMORY;
    UN_TRY(un_array_need(ctx, (void **)&mesh->first, &mesh->capacity[17],
                         (size_t)mesh->node_count + 1, sizeof *mesh->first));
    UN_TRY(un_array_need(ctx, (void **)&mesh->corner, &mesh->capacity[18], (size_t)corners + 1,
                         sizeof *mesh->corner));
    un_parallel_for(ctx, corners, 32768, list_corners, &a);
    UN_TRY(
        un_parallel_sort(ctx, w->arena, mesh->corner, a.node, corners, bits_for(mesh->node_count)));
    un_parallel_for(ctx, corners, 32768, find_first, &a);
    mesh->first[mesh->node_count] = (int32_t)corners;
    return UN_OK;
}
