/* The private part of the scene folder: the sandbox, places in the scene file, our Lua values.
 *
 * Everything that touches Lua runs inside un_sandbox_call. Lua errors leave C functions by longjmp,
 * so these functions own no memory: everything they allocate belongs to the scene or to Lua at
 * once. */
#ifndef UN_SCENE_LOADER_H
#define UN_SCENE_LOADER_H

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "scene/scene.h"

/* ---- the sandbox (sandbox.c, library.c) ---- */

typedef struct un_sandbox {
    un_context *ctx;
    const un_scene *scene;
    lua_State *L;
    char name[56]; /* of the scene file in messages, and Lua's name of the chunk */
    size_t bytes;  /* held by Lua */
    bool
        refused_by_context; /* memory was last refused by the context, not by the sandbox's limit */
    int32_t heavy_line;     /* where the script was when its memory passed half of the limit */
    void *scratch;          /* of the current call; freed when it ends */
    /* the current call */
    const char *activity, *remedy;          /* "the script", ... : the subject of a message */
    int64_t steps, step_limit;              /* Lua instructions */
    double cpu_start, cpu_limit, next_look; /* s; next_look on the wall clock */
    /* Once set, no pcall of the script catches the error. */
    un_status fatal;
    char message[256];
    /* results of the script */
    int32_t print_count;
    int scene_ref;      /* the table given to scene{}, or LUA_NOREF */
    int32_t scene_line; /* of the call */
    int32_t dim;        /* of the domain, once it is known; before that 0 */
    /* the first place given as {x, y} before the domain was known; line 0: none */
    struct {
        const char *root;
        int32_t line;
        char path[128], key[16];
        int32_t count; /* numbers given */
    } flat;
} un_sandbox;

typedef struct un_limits {
    const char *activity, *remedy;
    int64_t steps;
    double seconds; /* of this thread's processor time */
} un_limits;

typedef void un_sandbox_body(lua_State *L, void *arg);

un_status un_sandbox_create(un_context *ctx, const un_scene *scene, un_sandbox **sandbox);
void un_sandbox_destroy(un_sandbox *sandbox);
/* Runs body with an empty Lua stack. A Lua error becomes a status and a message of one sentence. */
un_status un_sandbox_call(un_sandbox *sandbox, un_sandbox_body *body, void *arg,
                          const un_limits *limits);
un_sandbox *un_sandbox_of(lua_State *L);
/* Leaves all running Lua code with this status: the context's message is already set. */
_Noreturn void un_sandbox_raise(lua_State *L, un_status status);
/* For work that Lua's instruction counter does not see: raises an error if the time is up. */
void un_sandbox_tick(lua_State *L);
/* Replaces the limits of the current call; its time starts again from zero. */
void un_sandbox_limit(un_sandbox *sandbox, const un_limits *limits);
double un_sandbox_cpu(void); /* processor time of this thread, s */
/* Calls the function on top of the stack with x, y, z and, unless NULL, t. Its count of
 * instructions starts at zero; the time is not reset. Leaves the result on top of the stack;
 * returns it as a number, NaN if it is none. */
double un_call_at(lua_State *L, int64_t steps, un_vec3 x, const double *t);
/* After a failed lua_pcall: raises a final error again, which the script cannot catch. */
void un_sandbox_check_final(lua_State *L, int lua_status);
/* Opens base, math, string and table as a scene may use them. */
void un_library_open(lua_State *L);

/* Control characters and broken UTF-8 become '?'; text that does not fit ends in "...". */
void un_clean_text(char *to, size_t size, const char *from, size_t length);

/* ---- places in the file (place.c, lines.c) ---- */

/* Where in the file a value is: the table given to `root` (scene or a constructor) on `line`, and
 * the path of keys inside it, as in "domain.size" or "solids.2". */
typedef struct un_place {
    lua_State *L;
    const char *root;
    int32_t line;
    char path[128];
} un_place;

un_place un_place_of_caller(lua_State *L, const char *root);
/* "dam.lua:3: domain.size ...", for `key` of the table at the place (NULL: the table itself). Text
 * of the script must have gone through un_describe or un_clean_text. */
_Noreturn void un_place_fail(const un_place *place, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same without naming the key. */
_Noreturn void un_place_say(const un_place *place, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "dam.lua:3" or "--set sizing.depth=2": where the key's value comes from. */
void un_place_show(const un_place *place, const char *key, char *to, size_t size);
/* "a table", "\"text\"", "3.5": the value at index, for messages. */
typedef struct un_description {
    char text[64];
} un_description;
un_description un_describe(lua_State *L, int index);

/* Each reads field `key` of the table at `t` (an absolute index); false, with *value unchanged, if
 * it is absent. */
typedef struct un_bounds {
    double min, max;
    bool above; /* min itself is too small */
} un_bounds;
#define UN_CONTACT_RANGE ((un_bounds){0, 180, false}) /* degrees */
bool un_read_number(const un_place *place, int t, const char *key, un_bounds range, double *value);
bool un_read_integer(const un_place *place, int t, const char *key, un_bounds range, int32_t *value);
bool un_read_numbers(const un_place *place, int t, const char *key, int count, double *values);
bool un_read_vec3(const un_place *place, int t, const char *key, un_vec3 *value);
/* A place or a direction, in 2D also {x, y}; *flat (may be NULL) tells whether it was given like
 * that. */
bool un_read_point(const un_place *place, int t, const char *key, un_vec3 *value, bool *flat);
/* The key has only as many numbers as 2D needs: fails in 3D, now or when the domain is known. */
void un_need_flat(const un_place *place, const char *key, int count);
/* Does the checks that un_need_flat had to postpone. */
void un_check_flat(lua_State *L);
bool un_read_bool(const un_place *place, int t, const char *key, bool *value);
/* One of the known words, into value[0..size). unavailable: words that later versions will know;
 * NULL: none. */
bool un_read_word(const un_place *place, int t, const char *key, const char *const *known,
                  const char *const *unavailable, char *value, size_t size);
/* The index of the table under `key`, 0 if it is absent; place then points inside it until it is
 * closed. usage: what the table should look like. */
int un_open_table(un_place *place, int t, const char *key, const char *usage);
void un_close_table(un_place *place, int opened);
/* Checks that every key is in the list or, with `items`, counts from 1 without gaps. */
void un_check_keys(const un_place *place, int t, const char *const *known, bool items);
/* Pushes a field; false, with nothing pushed, if it is absent. */
bool un_get_field(const un_place *place, int t, const char *key);

/* The line of a key in the text, by the same rules as un_place; 0 if it cannot be found. */
int32_t un_lines_find(const char *text, const char *root, int32_t root_line, const char *path);
/* The line of the first use of a name outside strings and comments; 0: none. */
int32_t un_lines_find_name(const char *text, const char *name);
/* The known word nearest to a mistyped one, or NULL if none is near. */
const char *un_nearest(const char *word, const char *const *known);
/* Edits (insert, remove, replace, swap neighbours) between two words; large for long words. */
int32_t un_edit_distance(const char *a, const char *b);

/* ---- our Lua values (values.c, build.c) ---- */

typedef enum un_value_tag { UN_VALUE_SHAPE, UN_VALUE_SOURCE, UN_VALUE_PROBE } un_value_tag;

typedef struct un_value {
    un_value_tag tag;
    int32_t line;
    const char *kind; /* the constructor's name */
} un_value;

typedef enum un_node_kind {
    UN_NODE_BOX,
    UN_NODE_SPHERE,
    UN_NODE_CYLINDER,
    UN_NODE_CAPSULE,
    UN_NODE_TORUS,
    UN_NODE_PLANE,
    UN_NODE_MESH,  /* user value 1: the file's name */
    UN_NODE_FIELD, /* user value 1: the function */
    UN_NODE_UNION, /* user value 1: the list of parts */
    UN_NODE_INTERSECT,
    UN_NODE_SUBTRACT,
    UN_NODE_MOVE,
    UN_NODE_SOLID,
} un_node_kind;

/* A shape as the script describes it. It becomes a un_shape when the scene is built, since a
 * field needs the domain first. User value 2 is the pose function. */
typedef struct un_node {
    un_value head;
    un_node_kind kind;
    un_vec3 a, b; /* min, max; center, axis; from, to; point, normal */
    double radius, tube;
    un_pose pose; /* of move */
    int32_t part_count;
    int32_t depth;
    double cost; /* leaves below, counted each time they are reached */
    bool has_velocity, has_pose, has_friction, has_slip, has_contact_angle;
    bool has_body; /* any of the next: density 0: none */
    un_vec3 spin;
    double density, restitution;
    uint32_t hold;
    bool has_bounds; /* of a field: from a to b */
    bool flat;       /* a and b are {x, y} */
    un_vec3 velocity;
    double friction, slip, contact_angle;
    char name[64];    /* "": none */
    char material[8]; /* "": not given */
    un_shape *built;
} un_node;

typedef struct un_source_value {
    un_value head;
    un_source source; /* user value 1: the shape */
} un_source_value;

typedef struct un_probe_value {
    un_value head;
    bool named;
    un_probe probe;
} un_probe_value;

/* Bodies that the liquid moves (body.c): reads what the table at 1 says, takes it over when the
 * method and the shape are known, and checks where they start. */
void un_read_body(const un_place *place, un_node *node);
void un_take_body(const un_place *own, const un_scene *scene, un_solid *solid, const un_node *node);
void un_check_bodies(lua_State *L, const un_scene *scene);

void un_values_open(lua_State *L);
extern const luaL_Reg un_probe_functions[]; /* probes.c */
/* Of a constructor's call: it takes one table; a key of it is missing; a point that it needs; a
 * name, which becomes a column head of a table, false if there is none. */
void un_check_argument(const un_place *place, const char *usage);
_Noreturn void un_place_missing(const un_place *place, const char *key, const char *usage);
un_vec3 un_need_point(const un_place *place, const char *key, const char *usage);
bool un_read_name(const un_place *place, char *name, size_t size);
/* User value of each: the table it was made from, if it was. */
#define UN_VALUE_TABLE 3
/* Makes the value at index once more, from the table on top of the stack, which it replaces. False:
 * an error message is there instead. */
bool un_value_remake(lua_State *L, int index);
/* NULL if the value at index is not one of ours. */
/* A value of `size` bytes with the call's table, on top of the stack. */
void *un_value_new(lua_State *L, size_t size, un_value_tag tag, const un_place *place);
un_value *un_value_at(lua_State *L, int index);
/* Reads by, rotate, about and (when allowed) scale from the table t into a pose. */
void un_read_motion(const un_place *place, int t, bool with_scale, un_pose *pose);

/* Makes the shape of the node at index. */
un_shape *un_build_shape(lua_State *L, un_scene *scene, int index);
void un_scene_note(lua_State *L, un_scene *scene, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- from the script's table to the definition (read.c, sizing.c, override.c) ---- */

void un_read_scene(lua_State *L, un_scene *scene);
void un_read_sizing(un_place *place, int t, un_scene *scene);
/* The keys `camera`, of sizing and of render, and `render` (render.c). False: there is no camera.
 * whole: eye and target must be there. */
bool un_read_camera(un_place *place, int t, bool whole, un_bounds fov, un_camera_keys *keys);
void un_read_render(un_place *place, int t, un_scene_def *def);
/* Calls the functions of a camera; path: "sizing.camera", for messages. */
un_status un_call_camera(const un_scene *scene, const un_camera_keys *keys, const char *path,
                         un_bounds fov, double t, un_viewpoint *camera);
un_status un_check_render(const un_scene *scene);
/* Adds where and when a function failed to the message, if the error is in the scene. */
un_status un_add_circumstance(const un_scene *scene, un_status status, const char *text);
/* fluid.c: density, viscosity, slip. */
void un_read_fluid(un_place *place, int t, un_scene_def *def);
void un_read_emitted(const un_place *place, int t, un_source *source);
/* Where an emitter does not set a property of its liquid, the scene's fluid does. */
void un_complete_source(const un_place *place, un_source *source, const un_scene_def *def);
bool un_read_slip(const un_place *place, int t, const char *key, double *slip);
void un_read_slips(un_place *place, int t, const char *const *side_names, double slip[6]);
un_status un_check_fluid(const un_scene *scene);
/* Calls the functions of sizing at the first and the last frame. */
un_status un_check_sizing(const un_scene *scene);
/* Lua's name for the chunk of an override's value. */
#define UN_OVERRIDE_NAME "--set"
/* Applies the overrides to the table at t. */
void un_apply_overrides(lua_State *L, const un_scene *scene, int t);
/* The override that sets a path, or NULL. */
const char *un_override_of(const un_scene *scene, const char *path);
/* The last override that sets something inside the table at a path, or NULL. */
const char *un_override_below(const un_scene *scene, const char *path);

#endif
