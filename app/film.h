/* A film by way of ffmpeg, which reads raw pictures from a pipe. */
#ifndef UN_APP_FILM_H
#define UN_APP_FILM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct film film;

/* Starts ffmpeg; the film appears under path only when complete. NULL: not possible, and message,
 * of size bytes, says why and what to do. SIGPIPE must be ignored by the program. */
film *film_open(const char *path, int32_t width, int32_t height, double rate, char *message,
                int32_t size);
/* rgb: width * height * 3 bytes. false: ffmpeg has gone away; film_close tells why. */
bool film_frame(film *f, const uint8_t *rgb);
/* Ends the film and frees it. keep: put it in its place; otherwise what there is is removed.
 * false: it failed, and message says why. */
bool film_close(film *f, bool keep, char *message, int32_t size);

#endif
