/* Bodies that the liquid moves, in the pressure system [Batty, Bertails & Bridson 2007].
 *
 * J_c U is what flows out of row c because a body moves with U, its velocity and its spin; by the
 * same numbers the pressure pushes the body:
 *
 *     A q = b - J U,   U = U* + unit M^-1 J^T q   =>   (A + unit J M^-1 J^T) q = b - J U*
 *
 * with q = p dt / rho, and `unit` what makes an impulse of q J. With M^-1 = L L^T the columns are
 * C = sqrt(unit) J L: as many as the body has free motions, never multiplied out
 * (linalg/columns.c). Liquid and bodies get opposite impulses, so that their momentum together does
 * not change. */
#include "pressure/coupling.h"

#include "pressure/system.h"

/* The preconditioner is corrected for bodies whose density is below this share of the liquid's:
 * each column costs a cycle of it. */
#define LIGHT 0.05
/* And for so many columns at most: each costs a vector, too, of these entries together. */
#define STRONG_MAX 120
#define STRONG_ENTRIES 2e7

/* L of a body, by rows: along the axes, then about them. */
static void find_factor(double l[6][6], const un_inverse_mass *m)
{
    memset(l, 0, 36 * sizeof(double));
    for (int i = 0; i < 3; i++) l[i][i] = sqrt(m->along[i]);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j <= i; j++) {
            double sum = m->about[i][j];
            for (int k = 0; k < j; k++) sum -= l[3 + i][3 + k] * l[3 + j][3 + k];
            if (i == j)
                l[3 + i][3 + i] = sum > 0 ? sqrt(sum) : 0;
            else
                l[3 + i][3 + j] = l[3 + j][3 + j] > 0 ? sum / l[3 + j][3 + j] : 0;
        }
}

/* L of the inverse of M + D: with S = 1 + L^T D L = K^T K it is L K^-1, K lower as L is, and
 * motions that are held stay so. */
static void add_mass(double l[6][6], double d[6][6])
{
    double s[6][6] = {{0}}, k[6][6] = {{0}};
    for (int i = 0; i < 36; i++) {
        double sum = i / 6 == i % 6;
        for (int a = 0; a < 6; a++)
            for (int b = 0; b < 6; b++) sum += l[a][i / 6] * d[a][b] * l[b][i % 6];
        s[i / 6][i % 6] = sum;
    }
    for (int j = 5; j >= 0; j--)
        for (int i = j; i >= 0; i--) { /* column i of row j: S_ij = sum_a K_ai K_aj */
            double sum = s[i][j];
            for (int a = j + 1; a < 6; a++) sum -= k[a][i] * k[a][j];
            k[j][i] = i == j ? sqrt(sum) : sum / k[j][j];
        }
    for (int i = 0; i < 6; i++) /* X K = L, from the last column on */
        for (int j = 5; j >= 0; j--) {
            double sum = l[i][j];
            for (int a = j + 1; a < 6; a++) sum -= l[i][a] * k[a][j];
            l[i][j] = sum / k[j][j];
        }
}

static bool is_free_motion(const un_coupled_body *b, int k)
{
    return b->factor[k][k] > 0;
}

typedef struct build_args {
    un_pressure *pr;
    un_coupling *c;
    un_coupling_rows *rows;
    un_coupling_mass *more; /* NULL: none */
    const void *arg;
} build_args;

static void count_rows(void *arg, int64_t begin, int64_t end)
{
    build_args *s = arg;
    for (int64_t i = begin; i < end; i++) {
        un_coupled_body *b = &s->c->body[i];
        double mass[6][6] = {{0}};
        b->row_count = s->rows(s->arg, b->body, NULL, NULL);
        if (!s->more) continue;
        s->more(s->arg, b->body, mass);
        add_mass(b->factor, mass);
    }
}

static void fill_rows(void *arg, int64_t begin, int64_t end)
{
    build_args *s = arg;
    un_coupling *c = s->c;
    for (int64_t i = begin; i < end; i++) {
        const un_coupled_body *b = &c->body[i];
        double(*push)[6] = c->push + b->first_row;
        int32_t *row = c->body_row + b->first_row;
        if (b->row_count == 0) continue;
        s->rows(s->arg, b->body, row, push);
        for (int k = 0, column = b->first_column; k < 6; k++) {
            if (!is_free_motion(b, k)) continue;
            int32_t at = c->first[column++];
            for (int32_t r = 0; r < b->row_count; r++) {
                double sum = 0;
                for (int m = 0; m < 6; m++) sum += push[r][m] * b->factor[m][k];
                c->row[at + r] = row[r];
                c->val[at + r] = sqrt(c->unit) * sum;
            }
        }
    }
}

enum { BODY, BODY_ROW, PUSH, FIRST, ROW, VAL, SET_VAL, TOGETHER };
#define NEED(array, which, count)                                                                  \
    UN_TRY(un_array_need(pr->ctx, (void **)&(array), &c->capacity[which], (size_t)(count) + 1,     \
                         sizeof *(array)))

int32_t un_coupling_collect(const un_pressure *pr, int32_t body, un_coupling_push_of *push_of,
                            const void *arg, int32_t *row, double (*push)[6])
{
    int32_t count = 0;
    for (int32_t r = 0; r < pr->matrix.n; r++) {
        double own[6];
        if (!push_of(arg, pr->place[r], body, own)) continue;
        if (row) {
            row[count] = r;
            memcpy(push[count], own, sizeof own);
        }
        count++;
    }
    return count;
}

/* Over ranks: a row next to a body, and what that adds to its outflow. */
typedef struct body_row {
    int32_t body, row;
    double push[6];
} body_row;

static un_status collect_own(const un_pressure *pr, const un_bodies *bodies,
                             un_coupling_push_of *push_of, const void *arg, body_row **mine,
                             int64_t *count)
{
    size_t capacity = 0;
    for (int32_t b = 0; b < bodies->count; b++)
        for (int64_t r = pr->own.begin; r < pr->own.end && bodies->body[b].free; r++) {
            body_row found = {.body = b, .row = (int32_t)r};
            if (!push_of(arg, pr->place[r], b, found.push)) continue;
            UN_TRY(un_array_reserve(pr->ctx, (void **)mine, &capacity, (size_t)*count + 1,
                                    sizeof **mine));
            (*mine)[(*count)++] = found;
        }
    return UN_OK;
}

/* Those of all ranks. */
typedef struct listed_rows {
    body_row *row;
    int64_t count;
} listed_rows;

static int32_t rows_of_list(const void *arg, int32_t body, int32_t *row, double (*push)[6])
{
    const listed_rows *all = arg;
    int32_t count = 0;
    for (int64_t k = 0; k < all->count; k++) {
        const body_row *from = &all->row[k];
        if (from->body != body) continue;
        if (row) {
            row[count] = from->row;
            memcpy(push[count], from->push, sizeof from->push);
        }
        count++;
    }
    return count;
}

un_status un_coupling_build_ranks(un_pressure *pr, un_bodies *bodies, double density, double unit,
                                  un_coupling_push_of *push_of, const void *arg)
{
    un_context *ctx = pr->ctx;
    body_row *mine = NULL;
    listed_rows all = {0};
    int64_t own = 0;
    un_status status = un_ranks_agree(ctx, collect_own(pr, bodies, push_of, arg, &mine, &own));
    if (status == UN_OK)
        status = un_ranks_list(ctx, mine, own, sizeof *mine, (void **)&all.row, &all.count);
    un_free(ctx, mine);
    UN_TRY(status);
    status = un_coupling_build(pr, bodies, density, unit, rows_of_list, &all);
    un_free(ctx, all.row);
    return un_ranks_agree(ctx, status);
}

un_status un_coupling_list_others(const un_pressure *pr, un_ids *rows)
{
    const un_coupling *c = &pr->coupling;
    for (int32_t e = 0; un_coupling_any(pr) && e < c->first[c->columns.count]; e++)
        if (c->row[e] < pr->own.begin || c->row[e] >= pr->own.end)
            UN_TRY(un_ids_add(pr->ctx, rows, c->row[e]));
    return UN_OK;
}

un_status un_coupling_build(un_pressure *pr, un_bodies *bodies, double density, double unit,
                            un_coupling_rows *rows, const void *arg)
{
    return un_coupling_build_heavier(pr, bodies, density, unit, rows, NULL, arg);
}

un_status un_coupling_build_heavier(un_pressure *pr, un_bodies *bodies, double density, double unit,
                                    un_coupling_rows *rows, un_coupling_mass *more, const void *arg)
{
    un_coupling *c = &pr->coupling;
    build_args s = {pr, c, rows, more, arg};
    int32_t bodies_used = 0, strong = 0;
    int64_t body_rows = 0, entries = 0, columns = 0;
    c->columns = (un_columns){0};
    c->body_count = 0;
    c->unit = unit;
    NEED(c->body, BODY, bodies->free_count);
    for (int light = 1; light >= 0; light--)
        for (int32_t b = 0; b < bodies->count; b++) {
            double relative = bodies->scene->def.solids[b].density / density;
            if (!bodies->body[b].free || (relative < LIGHT) != light) continue;
            un_coupled_body *to = &c->body[bodies_used++];
            *to = (un_coupled_body){.body = b, .light = light};
            find_factor(to->factor, &bodies->body[b].inverse);
        }
    un_parallel_for(pr->ctx, bodies_used, 1, count_rows, &s);
    for (int32_t i = 0; i < bodies_used; i++) {
        un_coupled_body *b = &c->body[i];
        b->first_row = (int32_t)body_rows;
        b->first_column = (int32_t)columns;
        body_rows += b->row_count;
        for (int k = 0; k < 6 && b->row_count > 0; k++) b->column_count += is_free_motion(b, k);
        columns += b->column_count;
        if (b->light && columns <= fmin(STRONG_MAX, STRONG_ENTRIES / pr->matrix.n))
            strong = (int32_t)columns;
        entries += (int64_t)b->column_count * b->row_count;
    }
    if (entries > INT32_MAX)
        return un_fail(pr->ctx, UN_ERROR_MEMORY,
                       "the bodies touch too many cells for one pressure system; lower "
                       "detail.finest");
    NEED(c->body_row, BODY_ROW, body_rows);
    NEED(c->push, PUSH, body_rows);
    NEED(c->first, FIRST, columns);
    NEED(c->row, ROW, entries);
    NEED(c->val, VAL, entries);
    c->first[0] = 0;
    for (int32_t i = 0, k = 0; i < bodies_used; i++)
        for (int m = 0; m < c->body[i].column_count; m++, k++)
            c->first[k + 1] = c->first[k] + c->body[i].row_count;
    c->body_count = bodies_used;
    un_parallel_for(pr->ctx, bodies_used, 1, fill_rows, &s);
    c->columns = (un_columns){(int32_t)columns, c->first, c->row, c->val};
    c->weak = (int32_t)columns - strong;
    return UN_OK;
}

static double dot(const un_coupling *c, int32_t k, const double *x)
{
    double sum = 0;
    for (int32_t e = c->first[k]; e < c->first[k + 1]; e++) sum += c->val[e] * x[c->row[e]];
    return sum;
}

un_status un_coupling_confine(un_pressure *pr, double *rhs)
{
    un_coupling *c = &pr->coupling;
    int32_t entries = c->first[c->columns.count];
    NEED(c->set_val, SET_VAL, entries);
    for (int32_t e = 0; e < entries; e++)
        c->set_val[e] = un_pressure_is_free(pr, c->row[e]) ? 0 : c->val[e];
    for (int32_t k = 0; k < c->columns.count; k++) {
        double given = 0;
        for (int32_t e = c->first[k]; e < c->first[k + 1]; e++)
            if (un_pressure_is_free(pr, c->row[e])) given += c->val[e] * pr->x[c->row[e]];
        for (int32_t e = c->first[k]; e < c->first[k + 1] && given != 0; e++)
            rhs[c->row[e]] -= c->set_val[e] * given;
    }
    return UN_OK;
}

void un_coupling_find_together(un_pressure *pr)
{
    un_coupling *c = &pr->coupling;
    memset(c->together, 0, (size_t)pr->matrix.n * sizeof *c->together);
    for (int32_t k = 0; k < c->columns.count; k++) {
        double t = dot(c, k, pr->x);
        for (int32_t e = c->first[k]; e < c->first[k + 1]; e++)
            c->together[c->row[e]] += c->val[e] * t;
    }
}

un_status un_coupling_need_together(un_pressure *pr)
{
    un_coupling *c = &pr->coupling;
    NEED(c->together, TOGETHER, pr->matrix.n);
    return UN_OK;
}

/* U += sqrt(unit) L C^T q */
static void push(const un_coupling *c, un_bodies *bodies, const double *q)
{
    for (int32_t i = 0; i < c->body_count; i++) {
        const un_coupled_body *b = &c->body[i];
        double u[6] = {0};
        if (b->column_count == 0) continue;
        for (int k = 0, column = b->first_column; k < 6; k++) {
            if (!is_free_motion(b, k)) continue;
            double t = sqrt(c->unit) * dot(c, column++, q);
            for (int m = 0; m < 6; m++) u[m] += b->factor[m][k] * t;
        }
        un_body *body = &bodies->body[b->body];
        body->velocity = un_add(body->velocity, un_v3(u[0], u[1], u[2]));
        body->spin = un_add(body->spin, un_v3(u[3], u[4], u[5]));
    }
}

void un_coupling_kick(const un_pressure *pr, un_bodies *bodies, int32_t i, const double impulse[6])
{
    const un_coupled_body *b = &pr->coupling.body[i];
    double half[6] = {0}, u[6] = {0};
    for (int k = 0; k < 36; k++) half[k % 6] += b->factor[k / 6][k % 6] * impulse[k / 6];
    for (int k = 0; k < 36; k++) u[k / 6] += b->factor[k / 6][k % 6] * half[k % 6];
    un_body *body = &bodies->body[b->body];
    body->velocity = un_add(body->velocity, un_v3(u[0], u[1], u[2]));
    body->spin = un_add(body->spin, un_v3(u[3], u[4], u[5]));
}

void un_coupling_push(un_pressure *pr, un_bodies *bodies)
{
    push(&pr->coupling, bodies, pr->x);
}

void un_coupling_push_given(un_pressure *pr, un_bodies *bodies, const double *q)
{
    un_coupling *c = &pr->coupling;
    for (int32_t k = 0; k < c->columns.count; k++) {
        double t = dot(c, k, q);
        for (int32_t e = c->first[k]; e < c->first[k + 1]; e++) pr->rhs[c->row[e]] -= c->val[e] * t;
    }
    push(c, bodies, q);
}

un_status un_coupling_push_surface(un_pressure *pr, un_bodies *bodies, const double *surface,
                                   double kick, double density)
{
    if (!surface || !un_coupling_any(pr)) return UN_OK;
    const un_coupling *c = &pr->coupling;
    double *given = un_alloc(pr->ctx, (size_t)pr->matrix.n, sizeof *given);
    un_status status = given ? UN_OK : UN_ERROR_MEMORY;
    if (pr->beside) status = un_ranks_agree(pr->ctx, status);
    for (int32_t e = 0; status == UN_OK && e < c->first[c->columns.count]; e++) {
        int32_t r = c->row[e];
        bool own = !pr->beside || (r >= pr->own.begin && r < pr->own.end);
        if (own) given[r] = surface[pr->place[r]] * kick / density;
    }
    if (status == UN_OK) {
        un_halo_share(pr->beside, given, sizeof *given);
        un_coupling_push_given(pr, bodies, given);
    }
    un_free(pr->ctx, given);
    return status;
}

void un_coupling_free(un_context *ctx, un_coupling *c)
{
    void *blocks[] = {c->body, c->body_row, c->push,    c->first,
                      c->row,  c->val,      c->set_val, c->together};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) un_free(ctx, blocks[i]);
}
