/* Private to src/run. */
#ifndef UN_RUN_LOOP_H
#define UN_RUN_LOOP_H

#include "output/output.h"
#include "ranks/ranks.h"
#include "run/run.h"

#define UN_PATH_MAX 2048
/* Longest name of a directory, with room for the names below it. */
#define UN_DIRECTORY_MAX (UN_PATH_MAX - 160)

typedef struct un_loop {
    un_context *ctx;
    un_scene *scene;
    const un_scene_def *def;
    const un_run_def *run;
    const un_method *method;
    void *state;
    un_estimate estimate;
    bool writes; /* of several ranks the first one does */
    un_table *stats, *probes;
    un_table *portions; /* ranks.csv; NULL: one rank */
    un_traffic sent;    /* up to the last row of it, */
    double busy;        /* and processor time */
    double written;     /* bytes of files of all ranks, up to the last row */
    un_table *bodies;   /* NULL: nothing moves, or an earlier version began the run */
    int lock;           /* file that is locked during the run; -1 none */
    bool opened;        /* the directory belongs to this run now */

    int32_t frame; /* finished */
    int32_t step;
    double time;
    bool between; /* steps of the next frame have been made */
    double max_speed;

    double started; /* the clock minus the time of earlier parts of the run */
    double work;    /* working time, see run.c, and the clocks at its end */
    double work_clock, work_processor;
    double frame_seconds;                /* smoothed cost of a frame, 0: not known yet */
    double stage_seconds[UN_STAGES_MAX]; /* the method's, then surface, output and checkpoint */
    const char *stage_names[UN_STAGES_MAX + 1];
    int32_t stage_count;

    bool front_warned; /* that a front probe does not see thin liquid */
    struct {
        char text[600];    /* what is wrong since when; "": nothing */
        uint32_t warned;   /* by kind */
        double volume;     /* mean relative error of the last steps */
        double body_speed; /* of solids, so far */
        double energy;     /* at the start, or where the run was resumed */
        bool has_energy;
    } suspect;

    un_state seen;    /* the method's arrays, as they lie */
    un_state before;  /* a copy of them from before the current step; empty: none */
    bool no_copies;   /* there was no memory for one */
    char *likeness;   /* what of the scene must not change, see likeness.c */
    double saved_at;  /* the clock at the last checkpoint */
    double save_cost; /* of the last checkpoint, s */
} un_loop;

/* Of several ranks: all states to rank 0, where the method then shows them (un_method.gather). */
un_status un_loop_gather(un_loop *l, unsigned what);

/* ---- the directory (directory.c) ---- */

void un_loop_path(char path[UN_PATH_MAX], const un_loop *l, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Creates it and locks it against other runs. */
un_status un_loop_claim(un_loop *l);
void un_loop_release(un_loop *l);
/* Removes frames after `last`, our own files only; -1: all. */
void un_loop_remove_frames(const un_loop *l, int32_t last);
/* Removes temporary files of a killed run. */
void un_loop_remove_asides(const un_loop *l);
un_status un_loop_record(un_loop *l, const char *status, const char *message);
un_status un_loop_write_scene(un_loop *l);

/* ---- what ranks do (portions.c) ---- */

/* Begins ranks.csv, or removes it where there is one rank. */
un_status un_loop_begin_portions(un_loop *l);
/* Counts from here on. */
void un_loop_mark_portions(un_loop *l);
/* A row for each rank; called by all. */
un_status un_loop_write_portions(un_loop *l, const un_step *step);

/* ---- checkpoints (keep.c) ---- */

typedef struct un_checkpoint {
    int32_t frame, step;
    bool between; /* frames */
} un_checkpoint;

#define UN_CHECKPOINTS_MAX 4096
/* Lists them, oldest first; the caller frees the list. */
un_status un_loop_checkpoints(const un_loop *l, un_checkpoint **list, int32_t *count);
void un_loop_checkpoint_path(char path[UN_PATH_MAX], const un_loop *l, const un_checkpoint *c);
/* Removes those of later steps than this; -1: all. */
un_status un_loop_remove_checkpoints(const un_loop *l, int32_t last_step);
/* Saves the current state, or the one before the current step; then prunes. */
un_status un_loop_save(un_loop *l, bool before);
/* Is one due? */
bool un_loop_save_is_due(const un_loop *l);

/* ---- resuming (resume.c) ---- */

/* Loads the newest intact checkpoint, and cuts tables and frames back to it. found: false if there
 * is none and starting again would lose no frame. */
un_status un_loop_resume(un_loop *l, bool *found);

/* ---- steps (step.c) ---- */

/* One step; if numbers go bad, it is repeated from before with shorter ones. */
un_status un_loop_step(un_loop *l, double dt, un_step *step);
/* To the copy from before the current step. */
un_status un_loop_go_back(un_loop *l);
/* Frees the spare room of arrays: reloads the state from before the current step if there is a
 * copy, else the current one. Fails if there is no memory for a copy. */
un_status un_loop_make_room(un_loop *l);

/* ---- is the step to be trusted? (suspect.c) ---- */

/* Warns, and notes it in the run's record, if a step is beyond what the scene can explain. */
void un_loop_suspect(un_loop *l, const un_step *step);

/* ---- is it the same scene? (likeness.c) ---- */

/* Lines "key=value" of all that results depend on. Caller frees. */
un_status un_likeness(un_context *ctx, const un_scene *scene, const un_method *method, char **text);
/* Fails with the first difference that matters; changes of solver and budget are logged. */
un_status un_likeness_compare(un_context *ctx, const char *was, const char *is);

#endif
