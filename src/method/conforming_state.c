/* Method `conforming` to a checkpoint and back.
 *
 * Saved: the surface, as the level set at its lattice and its vertices' places on their edges and
 * fill; velocities at faces, pressures and the emitters' divergence at tets; the ledger, the
 * shift, the rate. Found again: the surface's triangles and normals, the mesh.
 */
#include "method/conforming.h"

static uint64_t found_hash(const un_conforming *s)
{
    const un_stuffing *mesh = un_conforming_mesh(s);
    uint64_t hash = un_saving_hash((uint64_t)mesh->tet_count, mesh->x,
                                   (size_t)mesh->node_count * sizeof *mesh->x);
    return un_saving_hash(hash, mesh->tet, (size_t)mesh->tet_count * sizeof *mesh->tet);
}

un_status un_conforming_save(const void *state, un_state *out)
{
    const un_conforming *s = state;
    const un_stuffing *mesh = un_conforming_mesh(s);
    void *places;
    UN_TRY(un_core_save(&s->core, out));
    UN_TRY(
        un_state_add(out, "surface.phi", s->track.lattice.phi, un_track_node_count(&s->track), 4));
    UN_TRY(un_state_add_own(out, "surface.vertices", s->track.mesh.vertex_count, 8, &places));
    un_track_places(&s->track, places);
    UN_TRY(un_state_add(out, "surface.fill", s->track.fill, s->track.mesh.vertex_count, 4));
    UN_TRY(un_state_add(out, "velocity", s->u, mesh->face_count, 8));
    UN_TRY(un_state_add(out, "pressure", s->p, mesh->tet_count, 8));
    UN_TRY(un_state_add(out, "emitted", s->source,
                        s->core.def->source_count > 0 ? mesh->tet_count : 0, 8));
    if (s->p_total) UN_TRY(un_state_add(out, "pressure.total", s->p_total, mesh->tet_count, 8));
    if (un_conforming_sized(s)) {
        UN_TRY(un_state_add(out, "leaves.key", mesh->tree.key, mesh->tree.leaf_count, 8));
        UN_TRY(un_state_add(out, "leaves.level", mesh->tree.level, mesh->tree.leaf_count, 1));
    }
    UN_TRY(un_state_add_number(out, "shift", s->shift));
    UN_TRY(un_state_add_number(out, "rate", s->rate));
    return un_save_hash(out, found_hash(s));
}

/* The mesh: where sizes differ, on the leaves of before. */
static un_status build(un_conforming *s, const un_state *in)
{
    if (!un_conforming_sized(s)) return un_conforming_build(s, NULL);
    const un_section *key, *level;
    un_octree_request leaves;
    UN_TRY(un_state_array(in, "leaves.key", 8, &key));
    UN_TRY(un_state_array(in, "leaves.level", 1, &level));
    if (key->count != level->count)
        return un_fail(s->core.ctx, UN_ERROR_FILE,
                       "the checkpoint's leaves.level does not fit its leaves.key");
    UN_TRY(un_octree_request_leaves(&leaves, &s->core.arena, &un_conforming_mesh(s)->tree,
                                    un_section_data(key), un_section_data(level), key->count));
    return un_conforming_build(s, &leaves);
}

un_status un_conforming_load(void *state, const un_state *in)
{
    un_conforming *s = state;
    const un_section *places, *fill;
    UN_TRY(un_core_load(&s->core, in));
    UN_TRY(
        un_state_take(in, "surface.phi", s->track.lattice.phi, un_track_node_count(&s->track), 4));
    UN_TRY(un_state_array(in, "surface.vertices", 8, &places));
    UN_TRY(un_state_array(in, "surface.fill", 4, &fill));
    if (fill->count != places->count)
        return un_fail(s->core.ctx, UN_ERROR_FILE,
                       "the checkpoint's surface.fill does not fit its surface.vertices");
    UN_TRY(
        un_track_restore(&s->track, un_section_data(places), un_section_data(fill), places->count));
    if (s->solid) un_track_sample(&s->track, s->solid, un_track_solid, s->core.bodies);
    UN_TRY(build(s, in));
    UN_TRY(un_state_take_finite(in, "velocity", s->u, un_conforming_mesh(s)->face_count));
    UN_TRY(un_state_take_finite(in, "pressure", s->p, un_conforming_mesh(s)->tet_count));
    int64_t tets = un_conforming_mesh(s)->tet_count;
    memset(s->source, 0, (size_t)tets * sizeof *s->source);
    if (s->core.def->source_count > 0) UN_TRY(un_state_take_finite(in, "emitted", s->source, tets));
    if (un_state_find(in, "pressure.total")) {
        UN_TRY(un_array_need(s->core.ctx, (void **)&s->p_total, &s->capacity[10], (size_t)tets + 1,
                             sizeof *s->p_total));
        UN_TRY(un_state_take_finite(in, "pressure.total", s->p_total, tets));
    }
    un_conforming_weigh(s);
    UN_TRY(un_conforming_measure(s, &s->core.last));
    UN_TRY(un_state_number(in, "shift", &s->shift));
    UN_TRY(un_state_number(in, "rate", &s->rate));
    return un_load_hash(s->core.ctx, in, found_hash(s));
}
