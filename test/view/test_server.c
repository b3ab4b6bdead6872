/* The viewer's server as a client meets it, friendly or not: what it hands out, what it refuses,
 * and that nothing is left over. Client and server take turns in one thread. */
#include "cells.h"
#include "../output/scratch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "view/view.h"

static const char scene_text[] =
    "scene { domain = { size = {1, 1, 1} }, detail = { finest = 8, surface = 8 },\n"
    "  frames = { count = 2, rate = 24 },\n"
    "  liquid = { box { min = {0, 0, 0}, max = {0.4, 0.3, 0.5} } },\n"
    "  solids = { sphere { center = {0.2, 0.8, 0.2}, radius = 0.1, velocity = {1, 0, 0},\n"
    "    material = \"glass\" } } }\n";

static un_viewer *begin(un_context *ctx)
{
    check_ok(ctx, un_directory_create(ctx, scratch_path("run/frames/0000")));
    check_ok(ctx, un_directory_create(ctx, scratch_path("run/state")));
    scratch_write("run/scene.lua", scene_text, sizeof scene_text - 1);
    scratch_write("run/run.json", "{\"status\": \"done\"}", 18);
    scratch_write("run/stats.csv", "step,frame\n0,0\n1,1\n", 19);
    scratch_write("run/frames/0000/surface.ply", "ply\n", 4);
    scratch_write("secret", "secret", 6);
    char run[128];
    snprintf(run, sizeof run, "%s/run", scratch);
    const char *directories[] = {run};
    un_viewer_def def = {.directories = directories, .directory_count = 1, .patience = 1};
    un_viewer *v = NULL;
    un_status status = un_viewer_create(ctx, &def, &v);
    if (status == UN_ERROR_UNAVAILABLE) skip(); /* without libmicrohttpd or npm */
    check_ok(ctx, status);
    return v;
}

static int dial(const un_viewer *v)
{
    int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)un_viewer_port(v)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    connect(s, (struct sockaddr *)&to, sizeof to);
    return s;
}

static char reply[1 << 16];

/* What comes back until the other side closes or goes silent, NUL-terminated. */
static const char *hear(un_viewer *v, int s)
{
    size_t used = 0;
    for (int silent = 0; silent < (used ? 25 : 400) && used + 1 < sizeof reply;) {
        un_viewer_serve(v, 0.02);
        ssize_t got = recv(s, reply + used, sizeof reply - 1 - used, 0);
        if (got == 0) break;
        silent = got < 0 ? silent + 1 : 0;
        if (got > 0) used += (size_t)got;
    }
    reply[used] = 0;
    return reply;
}

static const char *ask_raw(un_viewer *v, const char *text, size_t length)
{
    int s = dial(v);
    for (int tries = 0; length > 0 && tries < 200; tries++) {
        un_viewer_serve(v, 0.01);
        ssize_t sent = send(s, text, length, MSG_NOSIGNAL);
        if (sent < 0) continue;
        text += sent;
        length -= (size_t)sent;
    }
    const char *answer = hear(v, s);
    close(s);
    return answer;
}

static const char *ask(un_viewer *v, const char *method, const char *path, const char *headers)
{
    static char text[8192];
    int n = snprintf(text, sizeof text, "%s %s HTTP/1.1\r\n%sConnection: close\r\n\r\n", method,
                     path, headers);
    return ask_raw(v, text, (size_t)n);
}

#define HOST "Host: 127.0.0.1:8080\r\n"

static int status_of(const char *answer)
{
    int status = 0;
    sscanf(answer, "HTTP/1.1 %d", &status);
    return status;
}

#define check_status(wanted, method, path, headers)                                                \
    do {                                                                                           \
        const char *check_answer = ask(v, method, path, headers);                                  \
        if (status_of(check_answer) != (wanted) || strstr(check_answer, "secret"))                 \
            fail_msg("%s %s: %.200s", method, path, check_answer);                                 \
    } while (0)

static void friendly(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_viewer *v = begin(ctx);
    const char *answer = ask(v, "GET", "/api/runs", HOST);
    assert_int_equal(status_of(answer), 200);
    assert_non_null(strstr(answer, "\"name\":\"run\""));
    assert_non_null(strstr(answer, "\"frames\":1,\"live\":false,\"surface\":true"));
    assert_non_null(strstr(answer, "\"cells\":false"));
    assert_non_null(strstr(answer, "\"stats\":19,\"probes\":-1,\"bodies\":-1"));
    assert_non_null(strstr(answer, "Content-Security-Policy: default-src 'none'"));
    assert_non_null(strstr(answer, "nosniff"));
    answer = ask(v, "GET", "/run/0/stats.csv", HOST);
    assert_non_null(strstr(answer, "\r\n\r\nstep,frame\n0,0\n1,1\n"));
    answer = ask(v, "GET", "/run/0/stats.csv?from=15", HOST);
    assert_non_null(strstr(answer, "\r\n\r\n1,1\n"));
    answer = ask(v, "GET", "/run/0/stats.csv?from=999999", HOST);
    assert_int_equal(status_of(answer), 200);
    answer = ask(v, "GET", "/run/0/frames/0000/surface.ply", HOST);
    assert_non_null(strstr(answer, "\r\n\r\nply\n"));
    answer = ask(v, "GET", "/run/0/scene.json", HOST);
    assert_non_null(strstr(answer, "\"domain\":[1,1,1],\"rate\":24,\"count\":2"));
    /* without bodies.csv, as of an older version, it is the scene that says where solids are */
    assert_non_null(strstr(answer, "\"material\":\"glass\",\"moves\":true,\"body\":\"body1\","
                                   "\"centre\":[0.2,0.8,0.2],"
                                   "\"poses\":[[1,0,0,0,"));
    assert_int_equal(status_of(ask(v, "GET", "/run/0/bodies.csv", HOST)), 404);
    assert_int_equal(status_of(ask(v, "GET", "/run/0/solid/0", HOST)), 200);
    assert_int_equal(status_of(ask(v, "GET", "/", HOST)), 200);
    answer = ask(v, "HEAD", "/run/0/stats.csv", HOST);
    assert_int_equal(status_of(answer), 200);
    assert_null(strstr(answer, "0,0\n"));
    assert_int_equal(status_of(ask(v, "GET", "/", "Host: localhost:9\r\n")), 200);
    /* a run that lives: the number in its lock is that of a process, here our own */
    char text[32];
    snprintf(text, sizeof text, "%ld\n", (long)getpid());
    scratch_write("run/state/lock", text, strlen(text));
    assert_non_null(strstr(ask(v, "GET", "/api/runs", HOST), "\"live\":true"));
    un_viewer_destroy(v);
    check_context_end(ctx);
}

static void solids_are_where_the_table_says(void **state)
{
    (void)state;
    static const char table[] = "time,body1_x,body1_y,body1_z,body1_qw,body1_qx,body1_qy,body1_qz\n"
                                "0,0.5,0.6,0.7,1,0,0,0\n";
    un_context *ctx = check_context();
    check_ok(ctx, un_directory_create(ctx, scratch_path("run")));
    scratch_write("run/bodies.csv", table, sizeof table - 1);
    un_viewer *v = begin(ctx);
    const char *answer = ask(v, "GET", "/run/0/scene.json", HOST);
    assert_non_null(strstr(answer, "\"body\":\"body1\",\"centre\":[0.2,0.8,0.2]}"));
    assert_null(strstr(answer, "poses"));
    answer = ask(v, "GET", "/run/0/bodies.csv", HOST);
    assert_non_null(strstr(answer, table));
    char size[32];
    snprintf(size, sizeof size, "\"bodies\":%zu", sizeof table - 1);
    assert_non_null(strstr(ask(v, "GET", "/api/runs", HOST), size));
    un_viewer_destroy(v);
    /* a page of its own has the poses in it */
    un_view_scene saved;
    check_ok(ctx, un_view_scene_make(ctx, scratch_path("run"), true, &saved));
    assert_non_null(strstr(saved.json, "\"poses\":[[1,0,0,0.3,0,1,0,-0.2,0,0,1,0.5]]"));
    un_view_scene_free(ctx, &saved);
    check_context_end(ctx);
}

static void hostile(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_viewer *v = begin(ctx);
    char path[256];
    /* links out of the directory, a link to a folder, a pipe, a folder by a file's name */
    snprintf(path, sizeof path, "%s/secret", scratch);
    assert_int_equal(symlink(path, scratch_path("run/probes.csv")), 0);
    assert_int_equal(symlink(scratch, scratch_path("run/frames/0001")), 0);
    assert_int_equal(mkfifo(scratch_path("run/frames/0000/mesh.vtu"), 0600), 0);
    assert_int_equal(mkdir(scratch_path("run/frames/0000/particles.vtp"), 0700), 0);
    static const char *const nothing[] = {"/run/0/probes.csv",
                                          "/run/0/frames/0001/surface.ply",
                                          "/run/0/frames/0000/cut/x/500000",
                                          "/run/0/frames/0001/cut/x/500000",
                                          "/run/0/frames/0000/particles.vtp",
                                          "/run/0/../secret",
                                          "/run/0/frames/../../secret",
                                          "/run/0/frames/0000/../../../secret",
                                          "/run/0/%2e%2e/secret",
                                          "/run/0/..%2fsecret",
                                          "/run/0/frames/0000/..%2f..%2f..%2fsecret",
                                          "//secret",
                                          "/../secret",
                                          "/etc/passwd",
                                          "/run/1/stats.csv",
                                          "/run/-1/stats.csv",
                                          "/run/99999999999999999999/stats.csv",
                                          "/run/0/state/lock",
                                          "/run/0/stats.csv/",
                                          "/run/0/stats.csv%00.html",
                                          "/run//stats.csv",
                                          "/run/0/frames/0000/surface.ply.tmp",
                                          "/run/0/solid/1",
                                          "/run/0/solid/-1",
                                          "/run/0/solid/4294967296",
                                          "/api/runs/",
                                          "/api",
                                          "/run/0/frames/4294967296/surface.ply"};
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++)
        check_status(404, "GET", nothing[i], HOST);
    check_status(400, "GET", "/run/0/stats.csv?from=-1", HOST);
    check_status(400, "GET", "/run/0/stats.csv?from=99999999999999999999999", HOST);
    static const char *const methods[] = {"POST",    "PUT",   "DELETE", "PATCH",
                                          "OPTIONS", "TRACE", "X"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        check_status(405, methods[i], "/run/0/stats.csv", HOST);
    /* a page of elsewhere: by name, by its own scripts */
    check_status(403, "GET", "/", "Host: evil.example\r\n");
    check_status(403, "GET", "/", "Host: 127.0.0.1.evil.example\r\n");
    check_status(403, "GET", "/", "Host: localhost:80@evil.example\r\n");
    check_status(403, "GET", "/run/0/stats.csv",
                 HOST "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n");
    check_status(403, "GET", "/run/0/stats.csv",
                 HOST "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\n");
    check_status(200, "GET", "/",
                 HOST "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n");
    int none = status_of(ask(v, "GET", "/", ""));
    assert_true(none == 403 || none == 400);
    un_viewer_destroy(v);
    check_context_end(ctx);
}

/* What is no request at all, too large or never ends. */
static void malformed(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_viewer *v = begin(ctx);
    size_t size = 1 << 20;
    char *text = malloc(size);
    memset(text, 'a', size);
    memcpy(text, "GET /", 5);
    int status = status_of(ask_raw(v, text, size)); /* a line without end */
    assert_true(status == 0 || status >= 400);
    int n = snprintf(text, size, "GET / HTTP/1.1\r\n" HOST "X: ");
    memset(text + n, 'b', size - (size_t)n); /* a header without end */
    status = status_of(ask_raw(v, text, size));
    assert_true(status == 0 || status >= 400);
    size_t used = (size_t)snprintf(text, size, "GET / HTTP/1.1\r\n" HOST);
    for (int i = 0; i < 20000; i++) used += (size_t)sprintf(text + used, "A%d: b\r\n", i);
    status = status_of(ask_raw(v, text, used)); /* headers without number */
    assert_true(status == 0 || status >= 400);
    for (int round = 0; round < 200; round++) { /* noise */
        for (int i = 0; i < 300; i++)
            text[i] = (char)(un_hash64((uint64_t)(300 * round + i)) & 255);
        if (round % 2) memcpy(text, "GET /", 5);
        int s = dial(v);
        un_viewer_serve(v, 0);
        send(s, text, 300, MSG_NOSIGNAL);
        un_viewer_serve(v, 0);
        close(s);
    }
    free(text);
    /* and it answers still */
    assert_int_equal(status_of(ask(v, "GET", "/api/runs", HOST)), 200);
    un_viewer_destroy(v);
    check_context_end(ctx);
}

/* Connections that say nothing do not keep others out, once they are as many as there may be. */
static void crowded(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_viewer *v = begin(ctx);
    int sockets[80];
    for (int i = 0; i < 80; i++) {
        sockets[i] = dial(v);
        un_viewer_serve(v, 0);
        send(sockets[i], "GET /", 5, MSG_NOSIGNAL);
    }
    for (int i = 0; i < 20; i++) un_viewer_serve(v, 0.005);
    for (int i = 0; i < 80; i++) close(sockets[i]);
    for (int i = 0; i < 20; i++) un_viewer_serve(v, 0.005);
    assert_int_equal(status_of(ask(v, "GET", "/api/runs", HOST)), 200);
    /* a client that reads nothing of what it asked for */
    int s = dial(v);
    un_viewer_serve(v, 0.01);
    static const char text[] = "GET / HTTP/1.1\r\n" HOST "\r\n";
    send(s, text, sizeof text - 1, MSG_NOSIGNAL);
    assert_int_equal(status_of(ask(v, "GET", "/api/runs", HOST)), 200);
    close(s);
    un_viewer_destroy(v);
    check_context_end(ctx);
}

/* Nor do three hundred that stay: they leave after a moment, as many at a time as there may be. */
static void besieged(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    un_context *ctx = check_context();
    un_viewer *v = begin(ctx);
    static int sockets[COUNT];
    for (int i = 0; i < COUNT; i++) {
        sockets[i] = dial(v);
        send(sockets[i], "GET /", 5, MSG_NOSIGNAL);
    }
    double start = un_seconds();
    assert_int_equal(status_of(ask(v, "GET", "/api/runs", HOST)), 200);
    check_below(un_seconds() - start, 3);
    for (int i = 0; i < COUNT; i++) close(sockets[i]);
    un_viewer_destroy(v);
    check_context_end(ctx);
}

/* A head that trickles in, a byte at a time and never late, ends all the same. */
static void slow(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_viewer *v = begin(ctx);
    int s = dial(v);
    double start = un_seconds();
    bool ended = false;
    send(s, "GET / HTTP/1.1\r\nX: ", 19, MSG_NOSIGNAL);
    while (!ended && un_seconds() - start < 20) {
        char byte;
        un_viewer_serve(v, 0.02);
        if (send(s, "x", 1, MSG_NOSIGNAL) < 0 && errno != EAGAIN) ended = true;
        if (recv(s, &byte, 1, 0) == 0) ended = true;
    }
    assert_true(ended);
    close(s);
    un_viewer_destroy(v);
    check_context_end(ctx);
}

static void only_loopback(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_viewer *v = begin(ctx);
    /* nobody listens at the machine's other addresses: 0.0.0.0 would have answered here too */
    int s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)un_viewer_port(v)),
                             .sin_addr.s_addr = inet_addr("127.0.0.2")};
    assert_int_equal(connect(s, (struct sockaddr *)&to, sizeof to), -1);
    close(s);
    /* a port that is taken */
    char run[128];
    snprintf(run, sizeof run, "%s/run", scratch);
    const char *directories[] = {run};
    un_viewer_def def = {directories, 1, un_viewer_port(v), 0};
    un_viewer *other;
    assert_int_equal(un_viewer_create(ctx, &def, &other), UN_ERROR_FILE);
    check_message(ctx, "--port");
    def.directory_count = 0;
    assert_int_equal(un_viewer_create(ctx, &def, &other), UN_ERROR_ARGUMENT);
    def.directory_count = 1, def.port = 70000;
    assert_int_equal(un_viewer_create(ctx, &def, &other), UN_ERROR_ARGUMENT);
    un_viewer_destroy(v);
    check_context_end(ctx);
}

/* Counts of the cut that an answer holds. */
static void check_cut(const char *answer, uint32_t points, uint32_t polygons)
{
    uint32_t counts[2];
    assert_int_equal(status_of(answer), 200);
    const char *body = strstr(answer, "\r\n\r\n");
    assert_non_null(body);
    memcpy(counts, body + 4, sizeof counts);
    assert_int_equal(counts[0], points);
    assert_int_equal(counts[1], polygons);
}

static void cuts(void **state)
{
    (void)state;
    un_context *ctx = check_context();
    un_viewer *v = begin(ctx);
    un_cells cells;
    assert_int_equal(status_of(ask(v, "GET", "/run/0/frames/0000/cut/x/500000", HOST)), 404);
    for (int32_t n = 4; n <= 8; n += 4) { /* and again when the file is another */
        check_make_cubes(ctx, &cells, n, UN_CELL_HEXAHEDRON);
        check_ok(ctx, un_output_cells(ctx, scratch_path("run/frames/0000/mesh.vtu"), &cells));
        un_cells_free(ctx, &cells);
        uint32_t m = (uint32_t)n;
        check_cut(ask(v, "GET", "/run/0/frames/0000/cut/x/500000", HOST), (m + 1) * (m + 1), m * m);
        check_cut(ask(v, "GET", "/run/0/frames/0000/cut/z/10", HOST), (m + 1) * (m + 1), m * m);
    }
    assert_non_null(strstr(ask(v, "GET", "/api/runs", HOST), "\"cells\":true"));
    scratch_write("run/frames/0000/mesh.vtu", "damaged", 7);
    assert_int_equal(status_of(ask(v, "GET", "/run/0/frames/0000/cut/x/500000", HOST)), 404);
    un_viewer_destroy(v);
    check_context_end(ctx);
}

static void routes(void **state)
{
    (void)state;
    un_route r;
    un_view_route("/run/7/frames/12/particles.vtp", &r);
    assert_int_equal(r.kind, UN_ROUTE_FILE);
    assert_int_equal(r.run, 7);
    assert_string_equal(r.file, "frames/0012/particles.vtp");
    un_view_route("/run/7/frames/12345/particles.vtp", &r);
    assert_string_equal(r.file, "frames/12345/particles.vtp");
    un_view_route("/run/7/frames/1234567/particles.vtp", &r);
    assert_int_equal(r.kind, UN_ROUTE_NONE);
    un_view_route("/run/7/frames/12/cut/y/499950", &r);
    assert_int_equal(r.kind, UN_ROUTE_CUT);
    assert_int_equal(r.run, 7);
    assert_int_equal(r.axis, 1);
    assert_int_equal(r.millionths, 499950);
    assert_string_equal(r.file, "frames/0012/mesh.vtu");
    static const char *const not_cuts[] = {
        "/run/7/frames/12/cut/",       "/run/7/frames/12/cut/w/1",   "/run/7/frames/12/cut/x/",
        "/run/7/frames/12/cut/x/-1",   "/run/7/frames/12/cut/x/1e3", "/run/7/frames/12/cut/x/1/2",
        "/run/7/frames/12/cut/xy/100", "/run/7/frames/12/mesh.vtu"};
    for (size_t i = 0; i < sizeof not_cuts / sizeof *not_cuts; i++) {
        un_view_route(not_cuts[i], &r);
        assert_int_equal(r.kind, UN_ROUTE_NONE);
    }
    un_view_route("", &r);
    assert_int_equal(r.kind, UN_ROUTE_NONE);
    assert_true(un_view_host_is_local("LOCALHOST"));
    assert_true(un_view_host_is_local("[::1]:80"));
    assert_false(un_view_host_is_local("127.0.0.1x"));
    assert_false(un_view_host_is_local("localhost.evil"));
    assert_false(un_view_host_is_local(""));
    assert_false(un_view_host_is_local(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes),
        cmocka_unit_test_setup_teardown(friendly, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(solids_are_where_the_table_says, scratch_begin,
                                        scratch_end),
        cmocka_unit_test_setup_teardown(cuts, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(hostile, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(malformed, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(crowded, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(besieged, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(slow, scratch_begin, scratch_end),
        cmocka_unit_test_setup_teardown(only_loopback, scratch_begin, scratch_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
