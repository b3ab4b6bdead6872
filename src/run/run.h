/* Run: the time loop, from a scene to an output directory, and what can be said beforehand. */
#ifndef UN_RUN_H
#define UN_RUN_H

#include "base/base.h"
#include "method/method.h"
#include "scene/scene.h"

/* Lowers detail.finest (and surface with it) until the estimate fits the scene's budget and the
 * context's memory cap, and says so. The estimate is that of the result. */
un_status un_run_fit_budget(un_context *ctx, un_scene *scene, un_estimate *estimate);
#define UN_FINEST_MIN 4 /* cells, below which nothing is lowered */
/* What a frame will take, on this machine, and how far a method that adapts will grow (rehearse.c);
 * size and first particles of the check are known. */
un_status un_run_rehearse(un_context *ctx, un_scene *scene, const un_method *method,
                          un_check *check);
/* The method of a scene, or a status with its sentence. */
un_status un_run_method(un_context *ctx, const un_scene *scene, const un_method **method);

#endif
