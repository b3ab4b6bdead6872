/* The page that npm and esbuild made from viewer/, embedded in the program. */
#include "view/view.h"

#ifdef UN_VIEW_PAGE

__asm__(".section .rodata\n"
        ".balign 16\n"
        "un_view_page_begin: .incbin \"" UN_VIEW_PAGE "\"\n"
        "un_view_page_end: .byte 0\n"
        ".previous\n");
extern const char un_view_page_begin[] __attribute__((visibility("hidden")));
extern const char un_view_page_end[] __attribute__((visibility("hidden")));

const char *un_view_page(un_context *ctx, size_t *size)
{
    (void)ctx;
    *size = (size_t)(un_view_page_end - un_view_page_begin);
    return un_view_page_begin;
}

#else

const char *un_view_page(un_context *ctx, size_t *size)
{
    *size = 0;
    un_fail(ctx, UN_ERROR_UNAVAILABLE,
            "this build has no viewer, because its page needs npm: install npm (Debian: "
            "apt-get install npm) and run `make` again, with a connection to the npm registry");
    return NULL;
}

#endif
