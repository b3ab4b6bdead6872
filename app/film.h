/* A film made by ffmpeg, which reads raw pictures from a pipe. */
#ifndef UN_APP_FILM_H
#define UN_APP_FILM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct film film;

/* Starts ffmpeg; the film appears at path only when complete. NULL: impossible, and message, of
 * size bytes, says why and what to do. The program must ignore SIGPIPE. */
film *film_open(const char *path, int32_t width, int32_t height, double rate, char *message,
                int32_t size);
/* rgb: width * height * 3 bytes. false: ffmpeg has exited; film_close says why. */
bool film_frame(film *f, const uint8_t *rgb);
/* Ends the film and frees it. keep: moves it to its path; otherwise removes it.
 * false: it failed, and message says why. */
bool film_close(film *f, bool keep, char *message, int32_t size);

#endif
