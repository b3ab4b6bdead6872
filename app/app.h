/* The command line. One file per command; each command returns the program's exit status. Only the
 * public header is used. */
#ifndef UN_APP_H
#define UN_APP_H

#include <stdio.h>

#include "undine.h"

enum { APP_DONE = 0, APP_FAILED = 1, APP_WRONG = 2, APP_INTERRUPTED = 130 };

/* argv[0] is the command's name. */
int app_run(int argc, char **argv);
int app_check(int argc, char **argv);
int app_info(int argc, char **argv);
int app_render(int argc, char **argv);
int app_export(int argc, char **argv);
int app_view(int argc, char **argv);
int app_surface(int argc, char **argv);
int app_tetmesh(int argc, char **argv);
int app_compare(int argc, char **argv);

/* ---- processors (processor.c, built_for.c) ---- */

extern const char *const app_built_for[]; /* what the library may use, NULL at the end */
bool app_processor_fits(void);            /* false: it has been said why not */

/* ---- several processes (launch.c) ---- */

/* Before a command: finds out whether this process was started with others, and joins them if the
 * command shares its work. Returns -1 to continue, otherwise the exit status. */
int app_launch(const char *command, bool shares, int argc, char **argv);
void app_land(void);        /* after it */
bool app_on_terminal(void); /* whether standard output is read by somebody */
un_ranks *app_ranks(void);  /* NULL: this process is alone */
static inline bool app_first(void)
{
    return un_ranks_rank(app_ranks()) == 0;
}
/* This process cannot go on, and the others do not know: ends them all. Returns the exit status if
 * there are no others. */
int app_abandon(int exit_status);

/* ---- options (options.c) ---- */

/* Strings collected from repeated options, in the order given. */
typedef struct app_list {
    char **items;
    int32_t count;
} app_list;
void app_list_free(app_list *list);

typedef enum app_kind {
    APP_SWITCH,    /* bool */
    APP_TEXT,      /* const char *: points into argv */
    APP_COUNT,     /* int32_t >= 1 */
    APP_INDEX,     /* int32_t >= 0 */
    APP_NUMBER,    /* double, finite */
    APP_BYTES,     /* size_t: 8G, 512M, 64k or plain bytes; powers of 1024 */
    APP_LIST,      /* app_list: `prefix` and the value are appended as one string */
    APP_LIST_INDEX /* the same, of a whole number >= 0 */
} app_kind;

typedef struct app_option {
    const char *name;   /* "--frames" */
    const char *letter; /* "-o", or NULL */
    app_kind kind;
    void *to;
    const char *value; /* what the help calls the value; NULL for switches */
    const char *help;
    const char *prefix; /* APP_LIST only */
} app_option;

typedef struct app_command {
    const char *name;          /* "run" */
    const char *operand;       /* the one argument it needs: "SCENE" */
    const char *summary;       /* sentences for the help */
    const app_option *options; /* ends with a NULL name; -h and --help are added to them */
} app_command;

/* Reads the options and the operand. Returns -1 to continue, otherwise the exit status: help was
 * requested, or something is wrong and has been reported. */
int app_options_parse(const app_command *command, int argc, char **argv, const char **operand);

/* The same with 0 to `most` operands. */
int app_options_parse_many(const app_command *command, int argc, char **argv, const char **operands,
                           int32_t most, int32_t *count);

/* The most similar of the words, NULL if none is similar; the list ends with NULL. */
const char *app_nearest(const char *word, const char *const *words);

/* ---- text (text.c) ---- */

/* "undine: ..." on standard error. What all ranks have to say is said by the first. */
void app_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* For a context's log: prints warnings and nothing else. */
void app_print_warning(void *user, un_log_level level, const char *message);
/* Prints the context's message and returns the exit status for a failure. */
int app_fail(const un_context *ctx, un_status status);
int app_fail_memory(void);

typedef struct app_text {
    char text[64];
} app_text;
app_text app_seconds(double seconds);       /* "3 min 20 s" */
app_text app_bytes(double bytes);           /* "1.5 GB" */
app_text app_count(double count);           /* "1,234,567" */
app_text app_percent(double fraction);      /* "+0.03 %" */
app_text app_length(double meters);         /* "15.6 mm" */
app_text app_cells(const int32_t cells[3]); /* "64 x 32 x 24", in 2D "64 x 32" */

/* ---- work on the frames of a run (frames.c) ---- */

#define APP_PATH 4200

/* Set by SIGINT or SIGTERM after app_catch_signals; a second signal ends the program at once. */
bool app_interrupted(void);
void app_catch_signals(void);
/* Number of frames in DIR, from 0. Reports an error if there are none, and warns of a gap. */
int32_t app_count_frames(const char *command, const char *directory);
/* "a:b", "a:", ":b" or "a"; NULL: all. If frame 0 is missing, as after `surface --frames`, all the
 * named frames must exist. False: wrong, and reported. */
bool app_choose_frames(const char *command, const char *text, const char *directory,
                       int32_t *first_frame, int32_t *last_frame);
/* The same for several processes: the first one looks and tells the others. */
bool app_share_frames(const char *command, const char *text, const char *directory,
                      int32_t *first_frame, int32_t *last_frame);
/* "x,y,z"; NULL is allowed and leaves `has` as it is. False: wrong, and reported. */
bool app_read_point(const char *command, const char *name, const char *text, bool *has,
                    double point[3]);
/* Whether an output may be written there: to nothing yet, or to a regular file. False: wrong, and
 * reported. */
bool app_check_output(const char *command, const char *path);
double app_now(void); /* s */

/* A bar on a terminal, a line per piece elsewhere. */
typedef struct app_report {
    const char *noun; /* "picture" */
    bool quiet, bar;
    int32_t done, total, made; /* made: not reused from an earlier run of the command */
    double start, seconds;     /* spent on those made */
    /* The cost of a frame is proportional to the size of its file; NULL: all cost the same. */
    const char *directory, *file;
    double made_bytes, left_bytes;
    bool shared; /* by several processes: in any order */
} app_report;
app_report app_report_make(const char *noun, int32_t total, bool quiet);
/* The pieces are frames first to last, each made from its file of this name. */
void app_report_weigh(app_report *report, const char *directory, const char *file, int32_t first,
                      int32_t last);
/* A frame is done, `made` now or reused, in order; the caller adds the seconds it took. */
void app_report_frame(app_report *report, int32_t frame, bool made);
/* frame: the one just done, -1 at the start. */
void app_report_show(const app_report *report, int32_t frame);
void app_report_clear(const app_report *report);
/* For work whose pieces are not frames; user: the report. False: stop. */
bool app_report_progress(void *user, int32_t done, int32_t total);

/* ---- progress of a run (progress.c) ---- */

typedef enum app_style { APP_BAR, APP_LINES, APP_JSON, APP_QUIET } app_style;

typedef struct app_progress {
    app_style style;
    int32_t frame; /* the last one shown, -1 none */
    double shown;  /* when the bar was last drawn, in the run's seconds */
    bool drawn;    /* there is a bar on the line */
    bool deaf;     /* nobody reads standard output any longer */
    un_progress last;
} app_progress;

/* JSON if requested, otherwise a bar on a terminal and lines elsewhere. */
void app_progress_init(app_progress *progress, bool quiet, bool json);
void app_progress_start(app_progress *progress, const char *scene, const char *directory);
void app_progress_step(app_progress *progress, const un_progress *now);
/* Notes and warnings of the library; user is the app_progress. */
void app_progress_log(void *user, un_log_level level, const char *message);
/* message: what went wrong, "" if nothing did. */
void app_progress_end(app_progress *progress, un_status status, const char *directory,
                      const char *message);

/* A JSON string with its quotes. */
void app_json_string(FILE *file, const char *text);
void app_json_number(FILE *file, double value);

#endif
