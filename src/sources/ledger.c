/* The ledger of volume [Ibayashi18 section 9].
 *
 * It keeps account of the volume at the start, the volume that emitters added and the volume that
 * left. A method measures its liquid: what is thick by the level set, what is thinner than that
 * sees by the particles (surface/thick.c). The difference becomes a small divergence in the next
 * projection. A small error is corrected over VOLUME_TIME, so that a tank at
 * rest is not stirred. The rate grows with the error: an error of one per cent is corrected forty
 * times as fast. Liquid must not shrink faster than it can fall, though: its surface would have to
 * be pulled down, and walls do not pull. It let go of them instead, and water that began 1 % too
 * high in a narrow tank never came to rest. */
#include "sources/sources.h"

#define VOLUME_TIME 1.0      /* paces, time in which a small error is corrected */
#define VOLUME_ERROR 0.00025 /* relative error that is corrected twice as fast */
#define VOLUME_RATE_MAX 0.5  /* in a pace */

void un_ledger_weigh(un_ledger *l, double found, double carried)
{
    double expected = un_ledger_expected(l);
    l->found = found;
    l->carried = carried;
    l->error = expected > 0 ? (found - expected) / expected : 0;
}

double un_ledger_expansion(un_ledger *l, double pace, double sink)
{
    double rate = (1 + fabs(l->error) / VOLUME_ERROR) / VOLUME_TIME;
    double wanted = un_clamp(-l->error * rate, -VOLUME_RATE_MAX, VOLUME_RATE_MAX) / pace;
    return l->rate = fmax(wanted, l->rate - sink);
}
