/* Paths and Host headers of requests: whatever they are, what comes of them names a file of a run
 * and nothing else. */
#include "fuzz.h"
#include "view/view.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char *text = malloc(count + 1);
    FUZZ_REQUIRE(text);
    memcpy(text, bytes, count);
    text[count] = 0;
    un_route r;
    un_view_route(text, &r);
    FUZZ_REQUIRE(r.run >= 0 && r.solid >= 0);
    FUZZ_REQUIRE((r.kind == UN_ROUTE_FILE || r.kind == UN_ROUTE_CUT) == (r.file[0] != 0));
    FUZZ_REQUIRE(r.axis >= 0 && r.axis < 3 && r.millionths >= 0 && r.millionths < 1000000);
    FUZZ_REQUIRE(!strstr(r.file, "..") && r.file[0] != '/' && !strstr(r.file, "//"));
    if (un_view_host_is_local(text)) FUZZ_REQUIRE(!strchr(text, '@') && !strchr(text, '/'));
    free(text);
    return 0;
}
