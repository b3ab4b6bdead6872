/* Work on the linear system that the three projections share: project.c, tets.c and faces.c. */
#ifndef UN_PRESSURE_SYSTEM_H
#define UN_PRESSURE_SYSTEM_H

#include "pressure/pressure.h"

/* Makes room for the index of this many places. */
un_status un_pressure_need_places(un_pressure *pressure, int64_t count);
/* Numbers places whose index is not negative; they become the rows. */
un_status un_pressure_number(un_pressure *pressure, int64_t place_count);
/* The same over ranks, for own nodes (tets_ranks.c); ghosts get the numbers of their rows. Makes
 * room for all rows. */
un_status un_pressure_number_nodes(un_pressure *pressure, const un_tets *mesh);
/* Over ranks: which rows of others this one asks for: those of ghosts and those next to bodies. */
un_status un_pressure_know_nodes(un_pressure *pressure, const un_tets *mesh);
/* Over ranks: row[r + 1] of an own row holds the number of its entries, and afterwards their end
 * among those of all ranks. Fails on all or on none. */
un_status un_pressure_start_rows(un_pressure *pressure);
/* Makes room for this many rows, with right-hand side and solution. */
un_status un_pressure_need_rows(un_pressure *pressure, int32_t n);
un_status un_pressure_need_entries(un_pressure *pressure, size_t count);
/* Room for what release.c keeps by row; and for the system with a set of free rows. */
un_status un_pressure_need_free(un_pressure *pressure);
un_status un_pressure_need_set(un_pressure *pressure);
/* Which rows may let go of a wall (release.c). */
typedef struct un_release {
    const void *arg;
    /* True if the row is next to a wall. least: its x if the pressure is zero; slack: how far x may
     * be below that before the wall lets go. Called from several threads. */
    bool (*limit)(const void *arg, int32_t row, double *least, double *slack);
    double clear;    /* rows whose x is above this need no look */
    const double *p; /* by place: -0.0 where the last step let go */
    bool on;         /* false: nothing lets go */
} un_release;
/* How strongly a wall may pull before it lets go. In fast liquid the pressure is noisier, and films
 * that shoot along a wall would come off it. over: the distance that the pressure acts over. */
#define UN_RELEASE_SHARE 0.1
static inline double un_release_slack(double let_go, double speed, double over)
{
    return (let_go + UN_RELEASE_SHARE * speed) * over;
}
/* That distance: a cell, but next to the surface only the distance to it. With a whole cell at the
 * rim of a plate (phi = -0.09 h), the pull took half of a sheet's speed. Below UN_RELEASE_NEAREST
 * the distance is noise. */
#define UN_RELEASE_NEAREST 0.05
static inline double un_release_way(double h, double phi)
{
    return un_clamp(-phi, UN_RELEASE_NEAREST * h, h);
}
/* Several ranks: whose rows this one wants to know beside its own, ascending. */
un_status un_pressure_know_rows(un_pressure *pressure, const int32_t *rows, int64_t count);
/* Solves the system; walls do not pull. Of several ranks, each gets x and `free` in its own rows
 * and beside them. */
un_status un_pressure_solve(un_pressure *pressure, const un_sites *sites, double tolerance,
                            int32_t iteration_limit, const un_release *rule,
                            un_solve_report *report);
/* Has the row let go of its wall? */
static inline bool un_pressure_is_free(const un_pressure *pressure, int32_t row)
{
    return pressure->free_count > 0 && pressure->free[row];
}

/* Open share of a tet. Openings below this are closed: they carry nothing, but spoil the matrix.
 */
#define UN_TET_OPEN_MIN 1e-3
static inline double un_tet_open(const un_tet_projection *in, int64_t t)
{
    double open = in->walls ? (double)in->walls->open[t] : 1;
    return open < UN_TET_OPEN_MIN ? 0 : open;
}

#endif
