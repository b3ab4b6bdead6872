/* Several processes started together, as by mpirun.
 *
 * The launcher's environment tells how many there are before MPI is started, and in builds without
 * MPI too. So a command that one process must do alone is refused instead of being done several
 * times over in one directory. */
#include "app.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

static un_ranks *ranks; /* NULL: one process */

un_ranks *app_ranks(void)
{
    return ranks;
}

/* Open MPI; MPICH, Intel MPI and Slurm's PMI; Slurm. SLURM_NTASKS would not do: it is also set in a
 * job's script, which is one process. */
static const char *const counts[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
static const char *const numbers[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};

static int32_t read_number(const char *name)
{
    const char *text = getenv(name);
    char *end;
    long number = text ? strtol(text, &end, 10) : -1;
    return text && *text && !*end && number >= 0 && number < INT32_MAX ? (int32_t)number : -1;
}

/* The first launcher that says anything is the innermost: mpirun inside a step of Slurm. */
static int32_t launched(int32_t *rank)
{
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int32_t count = read_number(counts[i]);
        *rank = read_number(numbers[i]);
        if (count > 0) return count;
    }
    *rank = 0;
    return 1;
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) return true;
    return false;
}

/* The first process says it and fails; mpirun hands on its exit status. */
static int refuse(int32_t rank, const char *command, int32_t count)
{
    if (rank > 0) return APP_DONE;
    app_error("%s: works in one process, and %d were started; start it without mpirun or srun",
              command, count);
    return APP_WRONG;
}

/* A rank touches a part of its long arrays only, and what it does not touch should take up no
 * memory: so none is made of pages that another has used before. */
#define LONG_ARRAY (1 << 20)

static void keep_arrays_apart(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, LONG_ARRAY);
#endif
}

int app_launch(const char *command, bool shares, int argc, char **argv)
{
    int32_t rank, count = launched(&rank);
    if (count == 1) return -1;
    if (asks_for_help(argc, argv)) return rank > 0 ? APP_DONE : -1;
    if (!shares) return refuse(rank, command, count);
    if (!un_ranks_available()) {
        if (rank > 0) return APP_DONE;
        app_error("%s: %d processes were started, and this build is without MPI; build it with "
                  "`make MPI=1`, or start it without mpirun",
                  command, count);
        return APP_WRONG;
    }
    ranks = un_ranks_create();
    if (!ranks) {
        app_error("out of memory");
        return APP_FAILED;
    }
    if (un_ranks_count(ranks) == count && !un_ranks_unlike(ranks)) {
        keep_arrays_apart();
        return -1;
    }
    if (un_ranks_count(ranks) == count) {
        if (rank == 0) app_error("%s: %s", command, un_ranks_unlike(ranks));
        app_land();
        return rank > 0 ? APP_DONE : APP_WRONG;
    }
    int32_t seen = un_ranks_count(ranks);
    app_land();
    if (rank > 0) return APP_DONE;
    app_error("%s: %d processes were started, but MPI knows of %d; use the mpirun of the MPI that "
              "Undine was built with, or srun with --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH)",
              command, count, seen);
    return APP_WRONG;
}

/* Open MPI gives the first process a terminal of its own, whatever mpirun's output goes to, so
 * mpirun is asked; on another machine it cannot be. */
bool app_on_terminal(void)
{
    char link[64], name[64];
    if (!isatty(STDOUT_FILENO)) return false;
    if (!ranks) return true;
    snprintf(link, sizeof link, "/proc/%ld/fd/1", (long)getppid());
    ssize_t length = readlink(link, name, sizeof name - 1);
    name[length > 0 ? length : 0] = 0;
    return strncmp(name, "/dev/pts/", 9) == 0 || strncmp(name, "/dev/tty", 8) == 0;
}

void app_land(void)
{
    un_ranks_destroy(ranks);
    ranks = NULL;
}

int app_abandon(int exit_status)
{
    fflush(stdout);
    if (un_ranks_count(ranks) > 1) un_ranks_abort(ranks, exit_status);
    return exit_status;
}
