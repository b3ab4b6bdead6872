/* Inside of bodies that the liquid moves; only src/bodies includes this. */
#ifndef UN_BODIES_FREE_H
#define UN_BODIES_FREE_H

#include "bodies/bodies.h"

un_status un_free_bodies_create(un_bodies *bodies);
void un_free_bodies_destroy(un_bodies *bodies);
/* Finds the axes of symmetry. points: of the surface at rest; reach: of the farthest one. */
void un_body_find_round(un_body *body, const un_vec3 *points, int32_t count, double reach,
                        int32_t dim);
/* Finds the box around both poses. */
void un_body_find_bounds(un_body *body);
/* Turns and shifts the body's end pose about its centre there. */
void un_body_shift(un_body *body, un_vec3 way, un_vec3 turn);

/* ---- contacts (contacts.c) ---- */

/* A point of body a's surface near the surface of body b, or of side -1 - b of the domain. */
typedef struct un_contact {
    int32_t a, b, point; /* point: of a's; -1: the nearest one */
    un_vec3 x, normal;   /* place; direction from b to a */
    un_vec3 along[2];
    double gap;             /* m, along the normal, at the start of the step */
    double push, slide[2];  /* impulses, N s */
    double before;          /* push of the last step; predictions use the smaller of two */
    double bounce;          /* m/s at which they met; 0: they have bounced, or do not */
    double pending;         /* m/s at which they met in the last step */
    double goal;            /* m/s: the normal speed must not be below */
    double ease[3];         /* inverse of the mass that push and slides feel */
    double last[3], way[3]; /* of the impulses, between sweeps of the solver */
} un_contact;

typedef struct un_contacts {
    un_vec3 *points; /* by body, at rest */
    int32_t *first;  /* by body, and the end */
    double *reach;   /* by body: the farthest point from the centre, m */
    double *seen;    /* by body: its speed when contacts were sought, m/s */
    un_contact *contact;
    int32_t count;
    un_contact *old; /* of the step before */
    int32_t old_count;
    size_t capacity[2];
    double kick; /* s: that forces acted for in the last step */
} un_contacts;

/* Applies last step's impulses, scaled. */
void un_contacts_foresee(un_bodies *bodies, double scale);
un_status un_contacts_solve(un_bodies *bodies, double dt);
/* The fraction of its path in dt that a body can move without entering anything that was not near
 * it when contacts were found. */
double un_contacts_share(const un_bodies *bodies, int32_t body, double dt);
/* Moves bodies apart that overlap at the end of the step. */
void un_contacts_part(un_bodies *bodies);

#endif
