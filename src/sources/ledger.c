/* The ledger of volume [Ibayashi18 section 9].
 *
 * It adds what was there at first, what emitters brought and what left. A method weighs the liquid
 * that its level set shows, and the difference becomes a small divergence of the next projection.
 * The correction is proportional to the error with a time of VOLUME_TIME, so that it does not stir
 * a tank at rest, and grows faster than the error: one of a per cent is corrected forty times as
 * fast. */
#include "sources/sources.h"

#define VOLUME_TIME 1.0      /* s, in which a small error is corrected */
#define VOLUME_ERROR 0.00025 /* the error that is corrected twice as fast */
#define VOLUME_RATE_MAX 0.5  /* 1/s */

void un_ledger_weigh(un_ledger *l, double found)
{
    double expected = un_ledger_expected(l);
    l->found = found;
    l->error = expected > 0 ? (found - expected) / expected : 0;
}

double un_ledger_expansion(const un_ledger *l)
{
    double rate = (1 + fabs(l->error) / VOLUME_ERROR) / VOLUME_TIME;
    return un_clamp(-l->error * rate, -VOLUME_RATE_MAX, VOLUME_RATE_MAX);
}
