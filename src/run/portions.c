/* ranks.csv: how the work of each step is divided among the ranks, and what they send one another.
 * Runs on one rank have no such file. */
#include <errno.h>
#include <unistd.h>

#include "run/loop.h"

static const char header[] = "step,time,rank,particles,cells,copies,migrated,migrated_bytes,"
                             "halo_bytes,solve_bytes,messages,calls,cuts,seconds,busy_seconds,"
                             "listed_bytes,file_bytes,coarse_bytes";
enum { COLUMNS = 18 };

void un_loop_mark_portions(un_loop *l)
{
    l->sent = un_ranks_traffic(l->ctx);
    l->busy = un_processor_seconds();
}

un_status un_loop_begin_portions(un_loop *l)
{
    char path[UN_PATH_MAX];
    if (!l->writes) return UN_OK;
    un_loop_path(path, l, "ranks.csv");
    if (un_rank_count(l->ctx) > 1) return un_table_create(l->ctx, path, header, &l->portions);
    if (unlink(path) != 0 && errno != ENOENT) return un_file_fail(l->ctx, "remove", path, errno);
    return UN_OK;
}

un_status un_loop_write_portions(un_loop *l, const un_step *step)
{
    un_context *ctx = l->ctx;
    int32_t count = un_rank_count(ctx);
    if (count == 1) return UN_OK;
    double *rows = un_alloc(ctx, (size_t)count * COLUMNS, sizeof *rows);
    un_status status = un_ranks_agree(ctx, rows ? UN_OK : UN_ERROR_MEMORY);
    un_traffic all = un_ranks_traffic(ctx), was = l->sent;
    un_portion p;
    l->method->portion(l->state, &p);
    double layers = all.layers - was.layers, elements = all.elements - was.elements;
    double row[COLUMNS] = {step->step,
                           step->time,
                           un_rank(ctx),
                           (double)p.particles,
                           (double)p.cells,
                           (double)p.copies,
                           (double)p.migrated,
                           (double)p.migrated_bytes,
                           layers + elements - (double)p.migrated_bytes,
                           all.rows - was.rows,
                           all.messages - was.messages,
                           all.calls - was.calls,
                           p.cuts,
                           step->seconds,
                           un_processor_seconds() - l->busy - (all.seconds - was.seconds),
                           all.listed - was.listed,
                           all.written - l->written,
                           all.coarse - was.coarse};
    l->written = all.written; /* between steps, too */
    if (status == UN_OK) un_ranks_gather(ctx, rows, row, sizeof row);
    for (int32_t r = 0; r < count && l->portions && status == UN_OK; r++)
        status = un_table_row(l->portions, rows + (size_t)r * COLUMNS, COLUMNS);
    un_free(ctx, rows);
    return status;
}
