/* Disconnected parts of a system; only linalg/ includes this. */
#ifndef UN_LINALG_COMPONENTS_H
#define UN_LINALG_COMPONENTS_H

#include "linalg/spread.h"

enum { UN_ANCHORED = -1, UN_EMPTY = -2, UN_SINGULAR = -3 };

typedef struct un_components {
    un_context *ctx;
    un_spread *spread;      /* NULL: all rows are here */
    int32_t n, count;       /* rows, parts */
    int32_t singular_count; /* parts whose rows all sum to zero, single empty rows included */
    int32_t mean_count;     /* of these, those that are not empty rows */
    int32_t *code;  /* by row, if there are singular parts: UN_ANCHORED, UN_EMPTY, or UN_SINGULAR
                       minus the number of its part */
    uint8_t *flags; /* scratch of the search */
    double largest; /* entry on the diagonal */
    double *sums;   /* sums by singular part, then their sizes */
    size_t capacity_code, capacity_flags, capacity_sums;
} un_components;

void un_components_free(un_components *parts);
/* finite: false if an entry is NaN or infinite. */
un_status un_components_find(un_components *parts, const un_csr *a, bool *finite);
/* Parts whose constant a column fixes are no longer singular. Returns whether there are any. */
bool un_components_pin(un_components *parts, const un_columns *columns);
/* Subtracts the mean of each singular part from v, and sets v to zero in empty rows. */
void un_components_remove_means(un_components *parts, double *v);

#endif
