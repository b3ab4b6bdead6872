/* Work on the linear system that the three projections share: project.c, tets.c and faces.c. */
#ifndef UN_PRESSURE_SYSTEM_H
#define UN_PRESSURE_SYSTEM_H

#include "pressure/pressure.h"

/* Makes room for the index of this many places. */
un_status un_pressure_need_places(un_pressure *pressure, int64_t count);
/* Numbers places whose index is not negative; they become the rows. */
un_status un_pressure_number(un_pressure *pressure, int64_t place_count);
/* Makes room for this many rows, with right-hand side and solution. */
un_status un_pressure_need_rows(un_pressure *pressure, int32_t n);
un_status un_pressure_need_entries(un_pressure *pressure, size_t count);
un_status un_pressure_solve(un_pressure *pressure, const un_sites *sites, double tolerance,
                            int32_t iteration_limit, un_solve_report *report);

#endif
