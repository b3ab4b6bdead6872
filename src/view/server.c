/* The server, on libmicrohttpd, without its own thread: un_viewer_serve does all the work.
 *
 * Only programs on this machine are answered. The socket is bound to 127.0.0.1, and the peer's
 * address is checked as well. A Host that is not local is refused (a foreign page whose name points
 * here), and so is what a foreign page fetches. Requests are limited in size and time: line and
 * header by the connection's memory, and a header that is not complete after some seconds ends the
 * connection, however steadily it trickles. */
#include "view/view.h"

#ifndef UN_WITH_VIEW

un_status un_viewer_create(un_context *ctx, const un_viewer_def *def, un_viewer **viewer)
{
    (void)def;
    *viewer = NULL;
    return un_fail(ctx, UN_ERROR_UNAVAILABLE,
                   "this build cannot view: install libmicrohttpd (Debian: libmicrohttpd-dev) and "
                   "npm, and run `make` again; `undine view DIR --save page.html` needs npm only");
}
int32_t un_viewer_port(const un_viewer *viewer)
{
    (void)viewer;
    return 0;
}
un_status un_viewer_serve(un_viewer *viewer, double seconds)
{
    (void)viewer, (void)seconds;
    return UN_ERROR_UNAVAILABLE;
}
void un_viewer_destroy(un_viewer *viewer)
{
    (void)viewer;
}

#else

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_PORT 8080
#define PORT_TRIES 20
#define CONNECTIONS_MAX 64
#define CONNECTION_BYTES ((size_t)32 << 10)
#define IDLE_SECONDS 10u
#define HEAD_SECONDS 5.0
/* What is left of that patience when no connection is free: a head arrives at once, and those that
 * wait for their turn are many. */
#define CROWDED_SECONDS 0.25

typedef struct connection_slot {
    struct MHD_Connection *connection; /* NULL: free */
    int socket;
    double since; /* when its current header began to arrive; < 0: it is being answered */
} connection_slot;

struct un_viewer {
    un_context *ctx;
    struct MHD_Daemon *daemon;
    int32_t port;
    double patience;
    int32_t run_count;
    struct {
        char *directory;
        un_view_scene scene;
        /* the cells used last, and their file: a moving cut makes many requests for one frame */
        un_cells cells;
        un_cell_ranges ranges;
        char cells_file[64];
        struct stat cells_stat;
    } runs[UN_VIEW_RUNS_MAX];
    connection_slot slots[CONNECTIONS_MAX];
};

/* ---- answers ---- */

static const char policy[] =
    "default-src 'none'; script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status,
                              struct MHD_Response *response, const char *type)
{
    if (!response) return MHD_NO;
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, "Content-Security-Policy", policy);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *why)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(why), (void *)(uintptr_t)why, MHD_RESPMEM_PERSISTENT);
    return answer(connection, status, response, "text/plain; charset=utf-8");
}

static enum MHD_Result answer_bytes(struct MHD_Connection *connection, const char *bytes,
                                    size_t size, const char *type)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, (void *)(uintptr_t)bytes, MHD_RESPMEM_PERSISTENT);
    return answer(connection, MHD_HTTP_OK, response, type);
}

static enum MHD_Result answer_runs(un_viewer *v, struct MHD_Connection *connection)
{
    un_text t = {.ctx = v->ctx};
    un_text_add(&t, "{\"version\":\"%s\",\"runs\":[", un_version());
    for (int32_t r = 0; r < v->run_count; r++) {
        if (r) un_text_add(&t, ",");
        un_view_describe(&t, v->runs[r].directory);
    }
    un_text_add(&t, "]}");
    enum MHD_Result result;
    if (t.status == UN_OK)
        result = answer(connection, MHD_HTTP_OK,
                        MHD_create_response_from_buffer(t.used, t.bytes, MHD_RESPMEM_MUST_COPY),
                        "application/json");
    else
        result = refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
    un_free(v->ctx, t.bytes);
    return result;
}

/* ?from=N: what a table has gained since byte N. */
static enum MHD_Result answer_file(un_viewer *v, struct MHD_Connection *connection,
                                   const un_route *route)
{
    int64_t size, from = 0;
    const char *text = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "from");
    if (text && *text) {
        if (strlen(text) > 18 || strspn(text, "0123456789") != strlen(text))
            return refuse(connection, MHD_HTTP_BAD_REQUEST, "from is not a number\n");
        from = strtoll(text, NULL, 10);
    }
    int file = un_view_open(v->runs[route->run].directory, route->file, &size);
    if (file < 0) return refuse(connection, MHD_HTTP_NOT_FOUND, "no such file\n");
    if (from > size) from = size;
    /* the response closes the file */
    struct MHD_Response *response =
        MHD_create_response_from_fd_at_offset64((uint64_t)(size - from), file, (uint64_t)from);
    if (!response) close(file);
    return answer(connection, MHD_HTTP_OK, response, route->type);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Reads the cells unless they are loaded already. */
static un_status need_cells(un_viewer *v, int32_t run, const char *name)
{
    int64_t size;
    struct stat found;
    int file = un_view_open(v->runs[run].directory, name, &size);
    bool there = file >= 0 && fstat(file, &found) == 0;
    if (file >= 0) close(file);
    if (!there) return UN_ERROR_FILE;
    if (strcmp(v->runs[run].cells_file, name) == 0 &&
        is_same_file(&found, &v->runs[run].cells_stat))
        return UN_OK;
    un_cells_free(v->ctx, &v->runs[run].cells);
    v->runs[run].cells_file[0] = 0;
    UN_TRY(un_view_read_cells(v->ctx, v->runs[run].directory, name, &v->runs[run].cells));
    v->runs[run].ranges = un_view_ranges(&v->runs[run].cells);
    v->runs[run].cells_stat = found;
    snprintf(v->runs[run].cells_file, sizeof v->runs[run].cells_file, "%s", name);
    return UN_OK;
}

static enum MHD_Result answer_cut(un_viewer *v, struct MHD_Connection *connection,
                                  const un_route *route)
{
    uint8_t *bytes = NULL;
    size_t size;
    un_slice slice = {0};
    double at = un_view_cut_at(v->runs[route->run].scene.domain, route->axis, route->millionths);
    un_status status = need_cells(v, route->run, route->file);
    const un_cells *cells = &v->runs[route->run].cells;
    if (status == UN_OK) status = un_cells_cut(v->ctx, &slice, cells, route->axis, at);
    if (status == UN_OK)
        status = un_view_encode_cut(v->ctx, &slice, route->axis, at, cells,
                                    &v->runs[route->run].ranges, &bytes, &size);
    un_slice_free(v->ctx, &slice);
    enum MHD_Result result;
    if (status == UN_OK)
        result = answer(connection, MHD_HTTP_OK,
                        MHD_create_response_from_buffer(size, bytes, MHD_RESPMEM_MUST_COPY),
                        route->type);
    else if (status == UN_ERROR_MEMORY)
        result = refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
    else
        result = refuse(connection, MHD_HTTP_NOT_FOUND, "there are no cells\n");
    un_free(v->ctx, bytes);
    return result;
}

static enum MHD_Result answer_route(un_viewer *v, struct MHD_Connection *connection,
                                    const un_route *route)
{
    size_t size;
    const char *bytes;
    if (route->kind > UN_ROUTE_RUNS && route->run >= v->run_count)
        return refuse(connection, MHD_HTTP_NOT_FOUND, "no such run\n");
    switch (route->kind) {
    case UN_ROUTE_PAGE:
        bytes = un_view_page(v->ctx, &size);
        return answer_bytes(connection, bytes, size, "text/html; charset=utf-8");
    case UN_ROUTE_RUNS:
        return answer_runs(v, connection);
    case UN_ROUTE_SCENE:
        bytes = v->runs[route->run].scene.json;
        return answer_bytes(connection, bytes, strlen(bytes), "application/json");
    case UN_ROUTE_SOLID: {
        const un_view_scene *scene = &v->runs[route->run].scene;
        if (route->solid >= scene->solid_count) break;
        return answer_bytes(connection, scene->solids[route->solid].bytes,
                            scene->solids[route->solid].size, "application/octet-stream");
    }
    case UN_ROUTE_FILE:
        return answer_file(v, connection, route);
    case UN_ROUTE_CUT:
        return answer_cut(v, connection, route);
    case UN_ROUTE_NONE:
        break;
    }
    return refuse(connection, MHD_HTTP_NOT_FOUND, "nothing has that name\n");
}

/* ---- connections ---- */

static bool is_loopback(const struct sockaddr *address)
{
    return address && address->sa_family == AF_INET &&
           ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
}

static enum MHD_Result on_accept(void *user, const struct sockaddr *address, socklen_t length)
{
    (void)user, (void)length;
    return is_loopback(address) ? MHD_YES : MHD_NO;
}

static connection_slot *find_slot(un_viewer *v, const struct MHD_Connection *connection)
{
    for (int32_t i = 0; i < CONNECTIONS_MAX; i++)
        if (v->slots[i].connection == connection) return &v->slots[i];
    return NULL;
}

static void on_connection(void *user, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    un_viewer *v = user;
    (void)context;
    bool begins = code == MHD_CONNECTION_NOTIFY_STARTED;
    connection_slot *slot = find_slot(v, begins ? NULL : connection);
    if (!slot) return;
    *slot = (connection_slot){0};
    if (!begins) return;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    *slot = (connection_slot){connection, info ? (int)info->connect_fd : -1, un_seconds()};
}

static void on_completed(void *user, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    (void)context, (void)code;
    connection_slot *slot = find_slot(user, connection);
    if (slot) slot->since = un_seconds();
}

static void end_slow_connections(un_viewer *v)
{
    double now = un_seconds();
    double patience = find_slot(v, NULL) ? v->patience : fmin(v->patience, CROWDED_SECONDS);
    for (int32_t i = 0; i < CONNECTIONS_MAX; i++) {
        connection_slot *slot = &v->slots[i];
        if (!slot->connection || slot->since < 0 || now - slot->since < patience) continue;
        shutdown(slot->socket, SHUT_RDWR); /* the daemon sees the end and cleans up */
        slot->since = now;
    }
}

static bool is_foreign(struct MHD_Connection *connection)
{
    const char *site = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site");
    const char *mode = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Mode");
    if (!site || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0) return false;
    return !mode || strcmp(mode, "navigate") != 0; /* a link to the page is allowed */
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **context)
{
    (void)version, (void)upload, (void)upload_size, (void)context;
    un_viewer *v = user;
    connection_slot *slot = find_slot(v, connection);
    if (slot) slot->since = -1;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
    if (!un_view_host_is_local(MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host")))
        return refuse(connection, MHD_HTTP_FORBIDDEN, "only for this machine\n");
    if (is_foreign(connection))
        return refuse(connection, MHD_HTTP_FORBIDDEN, "only for the viewer's own page\n");
    un_route route;
    un_view_route(path, &route);
    return answer_route(v, connection, &route);
}

/* Paths and queries are not decoded: none of ours has a % in it. */
static size_t on_unescape(void *user, struct MHD_Connection *connection, char *text)
{
    (void)user, (void)connection;
    return strlen(text);
}

static void on_message(void *user, const char *format, va_list arguments)
{
    (void)user, (void)format, (void)arguments; /* errors of clients do not concern our user */
}

/* ---- the viewer ---- */

static bool listen_at(un_viewer *v, int32_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    v->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_ERROR_LOG, (uint16_t)port, on_accept, v, on_request, v,
        MHD_OPTION_EXTERNAL_LOGGER, on_message, NULL, MHD_OPTION_UNESCAPE_CALLBACK, on_unescape,
        NULL, MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_BYTES, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, v, MHD_OPTION_NOTIFY_COMPLETED, on_completed, v, MHD_OPTION_END);
    if (!v->daemon) return false;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(v->daemon, MHD_DAEMON_INFO_BIND_PORT);
    v->port = info ? info->port : port;
    return true;
}

static un_status start(un_viewer *v, const un_viewer_def *def)
{
    size_t size;
    if (!un_view_page(v->ctx, &size)) return UN_ERROR_UNAVAILABLE;
    for (int32_t r = 0; r < def->directory_count; r++) {
        v->runs[r].directory = un_strdup(v->ctx, def->directories[r]);
        if (!v->runs[r].directory) return UN_ERROR_MEMORY;
        v->run_count = r + 1;
        UN_TRY(un_view_scene_make(v->ctx, def->directories[r], false, &v->runs[r].scene));
    }
    int32_t tries = def->port ? 1 : PORT_TRIES;
    for (int32_t t = 0; t < tries; t++)
        if (listen_at(v, def->port ? def->port : FIRST_PORT + t)) return UN_OK;
    return un_fail(v->ctx, UN_ERROR_FILE,
                   "cannot listen on port %d: %s; choose another with --port",
                   def->port ? def->port : FIRST_PORT, strerror(errno));
}

static un_status check_def(un_context *ctx, const un_viewer_def *def)
{
    if (def->directory_count < 1 || def->directory_count > UN_VIEW_RUNS_MAX)
        return un_fail(ctx, UN_ERROR_ARGUMENT, "a viewer shows 1 to %d runs, not %d",
                       UN_VIEW_RUNS_MAX, def->directory_count);
    if (def->port < 0 || def->port > 65535)
        return un_fail(ctx, UN_ERROR_ARGUMENT, "a port is a number from 1 to 65535");
    for (int32_t r = 0; r < def->directory_count; r++)
        if (strlen(def->directories[r]) > 3900)
            return un_fail(ctx, UN_ERROR_ARGUMENT, "the path is too long");
    return UN_OK;
}

un_status un_viewer_create(un_context *ctx, const un_viewer_def *def, un_viewer **viewer)
{
    *viewer = NULL;
    UN_TRY(check_def(ctx, def));
    un_viewer *v = un_alloc_zero(ctx, 1, sizeof *v);
    if (!v) return UN_ERROR_MEMORY;
    v->ctx = ctx;
    v->patience = def->patience > 0 ? def->patience : HEAD_SECONDS;
    un_status status = start(v, def);
    if (status != UN_OK) {
        un_viewer_destroy(v);
        return status;
    }
    *viewer = v;
    return UN_OK;
}

int32_t un_viewer_port(const un_viewer *viewer)
{
    return viewer->port;
}

un_status un_viewer_serve(un_viewer *v, double seconds)
{
    if (MHD_run_wait(v->daemon, (int32_t)(1e3 * un_clamp(seconds, 0, 3600))) != MHD_YES)
        return un_fail(v->ctx, UN_ERROR_FILE, "the server has stopped: %s", strerror(errno));
    end_slow_connections(v);
    return UN_OK;
}

void un_viewer_destroy(un_viewer *v)
{
    if (!v) return;
    un_context *ctx = v->ctx;
    if (v->daemon) MHD_stop_daemon(v->daemon);
    for (int32_t r = 0; r < v->run_count; r++) {
        un_view_scene_free(ctx, &v->runs[r].scene);
        un_cells_free(ctx, &v->runs[r].cells);
        un_free(ctx, v->runs[r].directory);
    }
    un_free(ctx, v);
}

#endif
