/* Run: the time loop, from a scene to an output directory, and predictions before it. */
#ifndef UN_RUN_H
#define UN_RUN_H

#include "base/base.h"
#include "method/method.h"
#include "scene/scene.h"

/* Lowers detail.finest (and surface with it) until the estimate fits the scene's budget and the
 * context's memory cap, and logs it. The estimate returned is that of the result. */
un_status un_run_fit_budget(un_context *ctx, un_scene *scene, un_estimate *estimate);
#define UN_FINEST_MIN 4 /* cells, below which nothing is lowered */
/* Predicts the time of a frame on this machine, and the growth of an adaptive method (rehearse.c);
 * size and initial particles of the check must be set. */
un_status un_run_rehearse(un_context *ctx, un_scene *scene, const un_method *method,
                          un_check *check);
/* The method of a scene, or a status with its message. */
un_status un_run_method(un_context *ctx, const un_scene *scene, const un_method **method);

#endif
