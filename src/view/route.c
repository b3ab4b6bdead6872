/* What a request may ask for. A whole path must match one of a few forms; only digits and names
 * from this list ever become part of a file name. */
#include "view/view.h"

#include <ctype.h>
#include <stdio.h>

static const struct {
    const char *name, *type;
} tables[] = {{"run.json", "application/json"},
              {"stats.csv", "text/csv; charset=utf-8"},
              {"probes.csv", "text/csv; charset=utf-8"},
              {"bodies.csv", "text/csv; charset=utf-8"},
              {"scene.lua", "text/plain; charset=utf-8"}},
  frame_files[] = {{"surface.ply", "application/octet-stream"},
                   {"particles.vtp", "application/octet-stream"}};

static bool take(const char **at, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(*at, word, length) != 0) return false;
    *at += length;
    return true;
}

/* Up to six digits. */
static bool take_number(const char **at, int32_t *number)
{
    int32_t digits = 0;
    *number = 0;
    for (; isdigit((unsigned char)**at) && digits < 6; ++*at, digits++)
        *number = 10 * *number + (**at - '0');
    return digits > 0;
}

void un_view_route(const char *path, un_route *route)
{
    const char *at = path;
    *route = (un_route){0};
    un_route found = {0};
    if (strcmp(path, "/") == 0 || strcmp(path, "/index.html") == 0) {
        route->kind = UN_ROUTE_PAGE;
        return;
    }
    if (strcmp(path, "/api/runs") == 0) {
        route->kind = UN_ROUTE_RUNS;
        return;
    }
    if (!take(&at, "/run/") || !take_number(&at, &found.run) || !take(&at, "/")) return;
    if (strcmp(at, "scene.json") == 0) {
        found.kind = UN_ROUTE_SCENE;
    } else if (take(&at, "solid/")) {
        if (!take_number(&at, &found.solid) || *at) return;
        found.kind = UN_ROUTE_SOLID;
    } else if (take(&at, "frames/")) {
        int32_t frame;
        if (!take_number(&at, &frame) || !take(&at, "/")) return;
        if (take(&at, "cut/")) {
            if (*at < 'x' || *at > 'z') return;
            found.axis = *at++ - 'x';
            if (!take(&at, "/") || !take_number(&at, &found.millionths) || *at) return;
            found.kind = UN_ROUTE_CUT;
            found.type = "application/octet-stream";
            snprintf(found.file, sizeof found.file, "frames/%04d/mesh.vtu", frame);
        }
        for (size_t i = 0; i < sizeof frame_files / sizeof *frame_files; i++)
            if (strcmp(at, frame_files[i].name) == 0) {
                found.kind = UN_ROUTE_FILE;
                found.type = frame_files[i].type;
                snprintf(found.file, sizeof found.file, "frames/%04d/%s", frame,
                         frame_files[i].name);
            }
    } else {
        for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
            if (strcmp(at, tables[i].name) == 0) {
                found.kind = UN_ROUTE_FILE;
                found.type = tables[i].type;
                snprintf(found.file, sizeof found.file, "%s", tables[i].name);
            }
    }
    if (found.kind != UN_ROUTE_NONE) *route = found;
}

bool un_view_host_is_local(const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    if (!host) return false;
    for (int i = 0; i < 3; i++) {
        size_t length = strlen(names[i]);
        if (strncasecmp(host, names[i], length) != 0) continue;
        const char *port = host + length;
        if (!*port) return true;
        /* any port: there may be a tunnel */
        if (*port == ':' && strspn(port + 1, "0123456789") == strlen(port + 1)) return true;
    }
    return false;
}
