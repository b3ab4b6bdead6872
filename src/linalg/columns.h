/* Columns beside a sparse matrix (columns.c); only linalg/ includes this. */
#ifndef UN_LINALG_COLUMNS_H
#define UN_LINALG_COLUMNS_H

#include "linalg/components.h"

typedef struct un_column_work {
    un_context *ctx;
    un_spread *spread;   /* NULL: all rows are here */
    const un_columns *c; /* of the current solve; NULL: none */
    int32_t weak;        /* of them, at the end */
    int32_t n;
    int32_t *touched; /* rows with entries, ascending; this rank's */
    int32_t *start;   /* by touched row, and the end: their entries, */
    int32_t *which;   /* the columns */
    double *val;      /* and the values */
    int32_t touched_count;
    int32_t *place; /* by row: its number among those touched; -1: no entry counts */
    double *t;      /* by column */
    double *v;      /* M^-1 C, column by column */
    double *factor; /* L with L L^T = 1 + C^T M^-1 C, by rows */
    bool corrected;
    size_t capacity[8];
} un_column_work;

void un_column_work_free(un_column_work *w);
/* Prepares a solve with c, for which a correction that was set up before serves on. finite: set to
 * false if an entry is not finite. */
un_status un_columns_prepare(un_column_work *w, const un_columns *c, const un_components *parts,
                             bool *finite);
/* y += sign C C^T x; returns |C^T x|^2. */
double un_columns_apply(un_column_work *w, double *y, const double *x, double sign);

/* To set up the correction, call begin; then spread for each column, which fills dense with the
 * column and returns where M^-1 of it must be written; then end. */
un_status un_columns_begin(un_column_work *w);
double *un_columns_spread(un_column_work *w, int32_t column, double *dense);
void un_columns_end(un_column_work *w);
/* z = M^-1 r becomes (M + C C^T)^-1 r. */
void un_columns_correct(un_column_work *w, double *z);

#endif
