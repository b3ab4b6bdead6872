/* Bodies that the liquid moves, as tets see them. */
#include "mesh/mesh.h"

int32_t un_tet_walls_free_body(const un_tet_walls *tw, int32_t t)
{
    const int32_t *n = tw->mesh->tet[t];
    if (tw->open[t] >= 1) return -1;
    int32_t nearest = n[0];
    for (int i = 1; i < 4; i++)
        if (tw->cut[n[i]] < tw->cut[nearest]) nearest = n[i];
    int32_t body = tw->body[nearest];
    if (body < 0 || tw->phi_solid[nearest] > tw->cut[nearest]) return -1;
    return tw->walls->bodies->body[body].free ? body : -1;
}

static void velocities(void *arg, int64_t begin, int64_t end)
{
    un_tet_walls *tw = arg;
    for (int64_t t = begin; t < end; t++) {
        int32_t body = un_tet_walls_free_body(tw, (int32_t)t);
        if (body >= 0)
            tw->u_solid[t] = un_body_velocity(&tw->walls->bodies->body[body],
                                              un_tets_center(tw->mesh, (int32_t)t));
    }
}

void un_tet_walls_find_velocities(un_tet_walls *tw)
{
    un_parallel_for(tw->ctx, tw->mesh->tet_count, 8192, velocities, tw);
}

/* ---- open shares ---- */

/* The eight tets that the middles of the edges cut a tet into, all of the same volume: corners 0 to
 * 3, then the middles of 01, 02, 03, 12, 13, 23. */
static const int8_t parts[8][4] = {{0, 4, 5, 6}, {4, 1, 7, 8}, {5, 7, 2, 9}, {6, 8, 9, 3},
                                   {4, 5, 6, 8}, {4, 5, 7, 8}, {5, 6, 8, 9}, {5, 7, 8, 9}};
static const int8_t edges[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};

/* The body that all nodes of a cut tet belong to, if the liquid moves it; -1: none. */
static int32_t only_body(const un_tet_walls *tw, int32_t t)
{
    int32_t body = un_tet_walls_free_body(tw, t);
    for (int i = 0; i < 4 && body >= 0; i++) {
        int32_t n = tw->mesh->tet[t][i];
        if (tw->body[n] != body || tw->phi_solid[n] > tw->cut[n]) return -1;
    }
    return body;
}

static void weigh(void *arg, int64_t begin, int64_t end)
{
    un_tet_walls *tw = arg;
    const un_tets *m = tw->mesh;
    for (int64_t t = begin; t < end; t++) {
        const int32_t *n = m->tet[t];
        int32_t body = tw->open[t] < 1 && tw->open[t] > 0 ? only_body(tw, (int32_t)t) : -1;
        if (body < 0 || (m->parted && m->side[n[0]] <= 0)) continue;
        double d[10], sum = 0;
        un_vec3 x[6];
        for (int i = 0; i < 4; i++) d[i] = tw->cut[n[i]];
        for (int e = 0; e < 6; e++)
            x[e] = un_scale(un_add(m->x[n[edges[e][0]]], m->x[n[edges[e][1]]]), 0.5);
        un_body_distances(&tw->walls->bodies->body[body], x, 6, d + 4);
        for (int p = 0; p < 8; p++) {
            double v[4];
            for (int i = 0; i < 4; i++) v[i] = d[parts[p][i]];
            sum += un_tet_fraction(v);
        }
        tw->open[t] = (float)(sum / 8);
    }
}

void un_tet_walls_weigh(un_tet_walls *tw)
{
    un_parallel_for(tw->ctx, tw->mesh->tet_count, 2048, weigh, tw);
}
