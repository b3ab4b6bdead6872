/* Scene: a Lua 5.4 file, run in a sandbox, becomes one validated, immutable definition.
 *
 * Fields carry the names of the scene file's keys; defaults live in un_scene_def_default and
 * nowhere else. docs/scene.md lists every key. */
#ifndef UN_SCENE_H
#define UN_SCENE_H

#include "base/base.h"
#include "geometry/geometry.h"

enum { UN_SIDE_LEFT, UN_SIDE_RIGHT, UN_SIDE_BOTTOM, UN_SIDE_TOP, UN_SIDE_BACK, UN_SIDE_FRONT };
/* left/right: x min/max; bottom/top: y min/max; back/front: z min/max */

/* What a method can do. Each method declares its traits in its table (method/method.h); other code
 * asks the traits and never compares names. */
typedef struct un_traits {
    const char *name;
    bool particles;  /* it has particles: frames hold them, surfaces can be made again from them */
    bool adaptive;   /* cells of many sizes: sizing has an effect, coarsening keeps the budget */
    bool graded;     /* the same, without particles: sizing has an effect where a scene has it */
    bool warps;      /* a fixed number of cells, which gather where sizing wants them */
    bool viscous;    /* fluid.viscosity */
    bool syrup_flat; /* the same in two dimensions */
    bool mixed;      /* density and viscosity that differ from place to place */
    bool faces;      /* normal velocities on faces of tets: solver.coupling = "implicit" */
    bool tension;    /* fluid.surface_tension */
    bool bodies;     /* solids that the liquid moves */
    bool momentum;   /* liquid and these bodies keep their momentum to round-off */
    bool flat;       /* two dimensions */
    bool thin_walls; /* walls thinner than two cells separate the liquid on their two sides */
    bool ranks;      /* several processes share the work */
    bool band;       /* solver.band: particles may form a narrow band under the surface */
} un_traits;
/* The first method with a trait in a list that ends with NULL: un_traits_find(list,
 * offsetof(un_traits, viscous)). NULL: none. */
const un_traits *un_traits_find(const un_traits *const *methods, size_t trait);
/* A moving solid without a name is named by its number among the moving ones. */
#define UN_BODY_NAME "body%d"

typedef struct un_solid {
    const un_shape *shape;
    char label[64];       /* "solids[2] (sphere)", for messages */
    char name[64];        /* in bodies.csv; "" for a static solid without a name */
    double friction;      /* 0 slips freely .. 1 sticks */
    double slip;          /* m, of viscous liquid: 0 sticks, infinity slides freely */
    double contact_angle; /* degrees, in the liquid, where there is surface tension */
    un_vec3 velocity;     /* m/s, constant; used if there is no pose function */
    int32_t pose;         /* reference of the pose function in the sandbox, -1 none */
    double density;       /* kg/m3 of a body that the liquid moves; 0: it moves as the scene says */
    un_vec3 spin;         /* rad/s, at first; of such bodies, as is velocity */
    double restitution;   /* of contacts: 0 .. 1 */
    double grip;          /* friction of contacts; -1: that of the other body alone */
    un_shape_sums sums;   /* of the shape, where there is a density */
    uint32_t hold;        /* bits 0 to 2: axes that it does not move along; 3 to 5: turn about */
    int32_t line;         /* in the file */
    bool moves;
    char material[8]; /* how it looks: matte, glass */
} un_solid;
static inline bool un_solid_is_glass(const un_solid *solid)
{
    return strcmp(solid->material, "glass") == 0;
}

/* Properties of a liquid, by where it starts: numbers, or functions of place in the sandbox (-1:
 * none). */
typedef struct un_matter {
    double density, viscosity; /* kg/m3, Pa s */
    int32_t density_formula, viscosity_formula;
} un_matter;

typedef enum un_source_kind { UN_SOURCE_EMITTER, UN_SOURCE_DRAIN } un_source_kind;

typedef struct un_source {
    un_source_kind kind;
    const un_shape *shape;
    char name[64];
    un_vec3 velocity;
    double flow;     /* m3/s (2D: m2/s), from which the speed is found; 0: the velocity is given */
    double from, to; /* s; to may be infinite */
    un_matter matter;
    bool has_density, has_viscosity; /* of its own */
} un_source;

typedef enum un_probe_kind {
    UN_PROBE_FRONT,
    UN_PROBE_HEIGHT,
    UN_PROBE_PRESSURE,
    UN_PROBE_WET,
    UN_PROBE_VELOCITY,
    UN_PROBE_FLUX,
    UN_PROBE_FORCE
} un_probe_kind;

typedef struct un_probe {
    un_probe_kind kind;
    char name[64];
    int32_t axis;  /* 0 x, 1 y, 2 z; velocity: -1 the speed; flux: across the rectangle */
    double sign;   /* front, wet: +1 the largest coordinate of the liquid, -1 the smallest */
    un_vec3 at;    /* height: x and z; pressure, velocity: all; flux: a corner */
    un_vec3 to;    /* flux: the corner opposite */
    int32_t solid; /* force: the solid's number */
    char body[64]; /* force: its name */
} un_probe;

/* A camera at a given time. */
typedef struct un_viewpoint {
    un_vec3 eye, target;
    double fov;    /* vertical, degrees */
    double aspect; /* width / height */
} un_viewpoint;

/* A camera as the file describes it: constants, and functions of time in the sandbox for the rest
 * (-1: none). */
typedef struct un_camera_keys {
    bool has_eye, has_target, has_fov;
    un_viewpoint still;
    int32_t eye, target, fov;
} un_camera_keys;

typedef struct un_scene_def {
    char method[32];
    const un_traits *traits; /* of that method */
    struct {
        int32_t dim;          /* 2: the plane z = 0, size.z is 0 */
        un_vec3 size;         /* the domain is [0, size] */
        bool open[6];         /* by UN_SIDE_ */
        double slip[6];       /* m, of viscous liquid: 0 sticks, infinity slides freely */
        double contact_angle; /* degrees, of the closed sides, as un_solid */
    } domain;
    struct {
        int32_t coarsest, finest, surface;
    } detail; /* cells along the longest side */
    struct {
        int32_t count;
        double rate;
    } frames;
    un_vec3 gravity;
    struct {
        union {
            un_matter matter;
            struct {
                double density, viscosity;
            };
        };
        double surface_tension; /* N/m */
    } fluid;
    struct {
        const un_shape *shape; /* the union of all; NULL: none */
        un_vec3 velocity;
    } liquid;
    un_solid *solids;
    int32_t solid_count;
    un_source *sources;
    int32_t source_count;
    un_probe *probes;
    int32_t probe_count;
    struct {
        double particles;
        double memory;
    } budget; /* 0: none; bytes */
    struct {
        char kind[16];      /* of linalg's un_solver_kind_names */
        char dump[512];     /* folder for the systems solved, "": none */
        int32_t dump_every; /* solves from one dump to the next */
        double tolerance;   /* of the pressure residual, relative */
        double cfl;         /* cells a particle may cross in a step */
        double pic;         /* 1/s: rate at which particle velocities relax to the grid's */
        double thickening;  /* of liquid that a carried surface can hardly resolve; 0 off */
        double band;        /* cells under the surface that particles fill; 0 all */
        double sheets;      /* how firmly sheets and threads thinner than a cell hold; 0 off */
        bool suction;       /* walls pull liquid as they push it */
        char surface[16];   /* the level set that a method steps with: hulls, colour, level-set */
        char interpolation[16]; /* of what a grid carries that warps: cubic, linear, weno6 */
        bool maccormack;        /* and whether its errors are found and taken off */
        char stress[16];        /* of viscous liquid: full, or laplacian to compare */
        char coupling[16];      /* of nodal viscosity to the method's velocities: flip, pic */
    } solver;
    struct {
        bool given; /* the scene has a table of it */
        /* Each is a switch and a factor on the sizes that it asks for: 0 off, 1 as documented. */
        double depth, curvature, solid_curvature, strain, film, sources;
        /* The measure of [Hong09]: 0 off, else a factor on its thresholds. */
        double deformability;
        bool has_camera, has_custom;
        un_camera_keys camera; /* has both eye and target; un_scene_camera evaluates it */
        int32_t custom;        /* function of place and time in the sandbox, -1 none */
        char warp[16];         /* the equation of a grid that warps: monge-ampere, poisson */
        double strength;       /* how much denser than elsewhere its cells get, 0: not at all */
        bool follow;           /* it follows the liquid; else it stays as it is at the start */
    } sizing;
    /* How pictures of a run look. The simulation does not depend on it. */
    struct {
        un_camera_keys camera; /* any part may be missing */
        bool has_light, has_water, has_solid, has_background;
        struct {
            double azimuth, elevation; /* degrees, from +z towards +x, and above the floor */
        } light;
        un_vec3 water, solid, background; /* red, green, blue, 0..1 */
    } render;
    struct {
        bool surface, particles, mesh;
    } output;
} un_scene_def;

un_scene_def un_scene_def_default(void);

struct un_scene {
    un_context *ctx;
    un_scene_def def;
    un_shape_set *shapes;
    char *path;
    char *folder;     /* names of mesh files are relative to it */
    bool reads_files; /* it has mesh files */
    char *text;       /* the file as read */
    char **overrides; /* those of a saved scene's last lines first */
    int32_t override_count;
    struct un_sandbox *sandbox;      /* kept for poses, formulas, cameras and the custom size */
    const un_traits *const *methods; /* of this program, NULL at the end */
    /* remarks found while loading, for `check`: open or inverted meshes and the like */
    char (*notes)[320];
    int32_t note_count;
};

/* un_scene_load (undine.h) with a list of methods to choose from, NULL at the end; the list must
 * outlive the scene. */
un_status un_scene_read(un_context *ctx, const char *path, const char *const *overrides,
                        int32_t override_count, const un_traits *const *methods, un_scene **scene);

/* The placement of a solid at time t: maps the solid's rest position to where it is. Runs Lua for
 * pose functions: call it from one thread only. */
un_status un_scene_pose(const un_scene *scene, int32_t solid, double t, un_pose *pose);
/* The camera of sizing at time t; its parts may be functions of time. One thread, as above. */
un_status un_scene_camera(const un_scene *scene, double t, un_viewpoint *camera);
/* The camera of render; only the parts it has are set. One thread, as above. */
un_status un_scene_render_camera(const un_scene *scene, double t, un_viewpoint *camera);
/* The custom size at many places, m; infinite where the formula returns nil. One thread, as above.
 * A value that is not a size is an error of the scene; the message names the place. */
un_status un_scene_custom_sizes(const un_scene *scene, double t, const un_vec3 *x, int64_t count,
                                float *size);
/* Is any of the liquid viscous? Does it differ from place to place? */
bool un_scene_viscous(const un_scene_def *def);
/* The scene's own second, by which rates in 1/s are divided and times multiplied (pace.c). With
 * gravity it is sqrt(L / g), scaled to 1 s for L = 1 m on earth; without, L over the fastest given
 * speed, or over 1 m/s if none is given. Under surface tension it is at most sqrt(rho L^3 / sigma).
 */
double un_scene_pace(const un_scene_def *def);
/* The default of solver.pic, 1/s. */
double un_scene_pic(const un_scene_def *def);
bool un_scene_mixed(const un_scene_def *def);
/* Density and viscosity at many places. One thread, as above. */
un_status un_scene_matter(const un_scene *scene, const un_matter *matter, const un_vec3 *x,
                          int64_t count, float *density, float *viscosity);
/* The scene as run, to be written to DIR/scene.lua: the file's text followed by lines that apply
 * the overrides, so that loading it again gives the same scene (mesh files are then looked up
 * relative to the original's folder). Caller frees with un_free. */
un_status un_scene_text(const un_scene *scene, char **text);

#endif
