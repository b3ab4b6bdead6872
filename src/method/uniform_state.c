/* Method `uniform` to a checkpoint and back.
 *
 * Saved: the particles, the pressure (the next guess), that of viscous liquid, what was emitted
 * inside the liquid and waits for the next projection, the ledger, the fastest speed; with a narrow
 * band which cells are deep, and the velocities that their faces have carried. Found again: bins,
 * level set, volume, depth. Other velocities of the grid are not needed: the next step makes them
 * anew from the particles. */
#include "method/uniform.h"

static const char *const carried[] = {"carried_x", "carried_y", "carried_z"};

/* The sum over rows: no order of the ranks. */
static uint64_t found_hash(const un_uniform *s)
{
    const un_grid *g = &s->core.grid;
    bool shared = s->ranks.bars != NULL;
    un_runs rows = un_grid_own_rows(g, 0);
    uint64_t sum = 0;
    for (un_part run; un_runs_next(&rows, &run);)
        for (int64_t row = run.begin; row < run.end; row++)
            sum += un_saving_hash((uint64_t)row, s->phi + row * g->n[0],
                                  (size_t)g->n[0] * sizeof *s->phi);
    double halves[2] = {(double)(sum >> 32),
                        (double)(sum & 0xffffffff)}; /* sums of them are exact */
    if (shared) un_ranks_add(s->core.ctx, halves, 2);
    sum = ((uint64_t)halves[0] << 32) + (uint64_t)halves[1];
    return un_hash64(sum ^ (uint64_t)(shared ? s->ranks.total : s->particles.count));
}

/* Arrays at cells that are saved. */
typedef struct saved_cells {
    const char *name;
    void *array;
    int32_t width;
} saved_cells;
#define SAVED_MAX 6

static int32_t list_cells(const un_uniform *s, saved_cells list[SAVED_MAX])
{
    int32_t count = 0;
    list[count++] = (saved_cells){"pressure", s->pressure->p, 8};
    for (int a = 0; a < 3 && s->band.width > 0; a++)
        if (s->band.u[a]) list[count++] = (saved_cells){carried[a], s->band.u[a], 8};
    if (s->band.width > 0) list[count++] = (saved_cells){"deep", s->band.deep, 1};
    if (s->thick.any) list[count++] = (saved_cells){"viscous_pressure", s->thick.p, 8};
    return count;
}

un_status un_uniform_save(const void *state, un_state *out)
{
    const un_uniform *s = state;
    saved_cells list[SAVED_MAX];
    int32_t first = out->count;
    UN_TRY(un_save_particles(out, &s->particles, NULL));
    UN_TRY(un_uniform_fetch_particles(s, out, first));
    UN_TRY(un_core_save(&s->core, out));
    first = out->count;
    int32_t count = list_cells(s, list);
    for (int32_t n = 0; n < count; n++)
        UN_TRY(
            un_state_add(out, list[n].name, list[n].array, s->core.grid.cell_count, list[n].width));
    un_uniform_fetch_cells(s, out, first);
    UN_TRY(un_save_inflow(out, &s->inflow));
    UN_TRY(un_state_add_number(out, "max_speed", s->max_speed));
    return un_save_hash(out, found_hash(s));
}

/* The same for one of several ranks. */
un_status un_uniform_keep(void *state, un_state *out)
{
    un_uniform *s = state;
    saved_cells list[SAVED_MAX];
    un_runs own = un_grid_own_cells(&s->core.grid, 0);
    int64_t cells = un_runs_count(own);
    UN_TRY(un_uniform_ranks_keep(s, out));
    UN_TRY(un_core_save(&s->core, out));
    int32_t count = list_cells(s, list);
    for (int32_t n = 0; n < count; n++) {
        void *to;
        UN_TRY(un_state_add_own(out, list[n].name, cells, list[n].width, &to));
        un_runs_pack(to, list[n].array, (size_t)list[n].width, own);
    }
    UN_TRY(un_save_inflow(out, &s->inflow));
    return un_state_add_number(out, "max_speed", s->max_speed);
}

/* Those of this rank. */
static un_status take_own(un_uniform *s, const un_state *in, const saved_cells *cells)
{
    un_runs own = un_grid_own_cells(&s->core.grid, 0);
    int64_t count = un_runs_count(own);
    char *all = un_alloc(s->core.ctx, (size_t)count + 1, (size_t)cells->width);
    if (!all) return UN_ERROR_MEMORY;
    un_status status = un_state_take(in, cells->name, all, count, cells->width);
    if (status == UN_OK) un_runs_unpack(cells->array, all, (size_t)cells->width, own);
    un_free(s->core.ctx, all);
    return status;
}

/* The particles and the pressure, shared out. */
static un_status load_parts(un_uniform *s, const un_state *in)
{
    bool kept = un_state_find(in, "ranks.first") != NULL;
    saved_cells list[SAVED_MAX];
    UN_TRY(kept ? un_uniform_ranks_take(s, in) : un_uniform_share_out(s));
    int32_t count = list_cells(s, list);
    for (int32_t n = 0; n < count; n++) {
        bool carries = list[n].array != s->pressure->p && list[n].array != s->thick.p;
        if (carries && !un_state_find(in, "deep")) continue;
        if (kept)
            UN_TRY(take_own(s, in, &list[n]));
        else
            UN_TRY(un_state_take(in, list[n].name, list[n].array, s->core.grid.cell_count,
                                 list[n].width));
    }
    if (!(s->band.width > 0)) return UN_OK;
    return un_grid_share(&s->core.grid, &(un_layered){s->band.deep, 1}, 1, UN_UNIFORM_BELOW);
}

un_status un_uniform_load(void *state, const un_state *in)
{
    un_uniform *s = state;
    UN_TRY(un_core_load(&s->core, in));
    UN_TRY(un_walls_update(s->core.walls));
    UN_TRY(un_colour_normalizer(s->core.ctx, s->normalizer, &s->core.grid, s->core.walls));
    UN_TRY(un_load_particles(&s->core, in, &s->particles));
    un_pressure_forget(s->pressure);
    UN_TRY(un_load_inflow(s->core.ctx, in, &s->inflow, s->core.grid.cell_count));
    UN_TRY(load_parts(s, in));
    UN_TRY(un_uniform_sort(s)); /* they are sorted; this finds the bins */
    UN_TRY(un_uniform_level_set(s));
    un_step_init(&s->core.last);
    UN_TRY(un_uniform_measure(s, &s->core.last, &(double){0}));
    UN_TRY(un_state_number(in, "max_speed", &s->max_speed));
    bool kept = un_state_find(in, "ranks.first") && !un_state_find(in, "found.hash");
    if (kept) return UN_OK; /* by this run */
    return un_load_hash(s->core.ctx, in, found_hash(s));
}
