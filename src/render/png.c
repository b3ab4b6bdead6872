/* Pictures as PNG files. libpng takes its memory from the context and reports errors by longjmp,
 * so every call that may jump is in a function without local variables to lose. */
#include "render/render.h"
#include "output/output.h"

#include <png.h>
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>

/* Of zlib, 1..9: beyond this, time grows and files hardly shrink. */
#define COMPRESSION 4

typedef struct png_task {
    un_context *ctx;
    const char *path;
    un_file *file; /* of the writer */
    FILE *source;  /* of the reader */
    un_status status;
} png_task;

static void *png_allocate(png_structp png, size_t size)
{
    png_task *task = png_get_mem_ptr(png);
    void *block = un_alloc(task->ctx, size, 1);
    if (!block) task->status = UN_ERROR_MEMORY;
    return block;
}

static void png_release(png_structp png, void *block)
{
    png_task *task = png_get_mem_ptr(png);
    un_free(task->ctx, block);
}

static void on_png_error(png_structp png, const char *text)
{
    png_task *task = png_get_error_ptr(png);
    if (task->status == UN_OK)
        task->status =
            un_fail(task->ctx, UN_ERROR_FILE, "%s: not a valid PNG: %s", task->path, text);
    png_longjmp(png, 1);
}

static void on_png_warning(png_structp png, const char *text)
{
    (void)png, (void)text;
}

static void put_bytes(png_structp png, uint8_t *bytes, size_t count)
{
    png_task *task = png_get_io_ptr(png);
    un_file_write(task->file, bytes, count);
}

static void flush_nothing(png_structp png)
{
    (void)png;
}

static void encode(png_task *task, png_structp png, png_infop info, const uint8_t *rgb,
                   int32_t width, int32_t height)
{
    if (setjmp(png_jmpbuf(png))) return;
    png_set_write_fn(png, task, put_bytes, flush_nothing);
    png_set_compression_level(png, COMPRESSION);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, 8, PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_sRGB(png, info, PNG_sRGB_INTENT_PERCEPTUAL);
    png_write_info(png, info);
    for (int32_t j = 0; j < height; j++) png_write_row(png, rgb + 3 * (size_t)width * (size_t)j);
    png_write_end(png, info);
}

un_status un_png_write(un_context *ctx, const char *path, const uint8_t *rgb, int32_t width,
                       int32_t height)
{
    if (!path || !rgb || width < 1 || height < 1)
        return un_fail(ctx, UN_ERROR_ARGUMENT,
                       "a picture needs a path, pixels and a size, not %dx%d", width, height);
    png_task task = {.ctx = ctx, .path = path};
    UN_TRY(un_file_create(ctx, path, &task.file));
    png_structp png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &task, on_png_error,
                                                on_png_warning, &task, png_allocate, png_release);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (info)
        encode(&task, png, info, rgb, width, height);
    else if (task.status == UN_OK)
        task.status = UN_ERROR_MEMORY;
    if (png) png_destroy_write_struct(&png, &info);
    if (task.status == UN_OK) return un_file_commit(task.file);
    un_file_discard(task.file);
    return task.status;
}

static void get_bytes(png_structp png, uint8_t *bytes, size_t count)
{
    png_task *task = png_get_io_ptr(png);
    if (fread(bytes, 1, count, task->source) != count) png_error(png, "it is cut short");
}

static void decode(png_structp png, png_infop info, uint8_t *rgb, int32_t width, int32_t height)
{
    if (setjmp(png_jmpbuf(png))) return;
    png_set_read_fn(png, png_get_error_ptr(png), get_bytes);
    png_read_info(png, info);
    if (png_get_image_width(png, info) != (png_uint_32)width ||
        png_get_image_height(png, info) != (png_uint_32)height ||
        png_get_bit_depth(png, info) != 8 || png_get_color_type(png, info) != PNG_COLOR_TYPE_RGB ||
        png_get_interlace_type(png, info) != PNG_INTERLACE_NONE)
        png_error(png, "it is a picture of another size or kind");
    for (int32_t j = 0; j < height; j++)
        png_read_row(png, rgb + 3 * (size_t)width * (size_t)j, NULL);
    png_read_end(png, NULL);
}

un_status un_png_read(un_context *ctx, const char *path, uint8_t *rgb, int32_t width,
                      int32_t height)
{
    png_task task = {.ctx = ctx, .path = path, .source = fopen(path, "rb")};
    if (!task.source) return un_file_fail(ctx, "read", path, errno);
    png_structp png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &task, on_png_error,
                                               on_png_warning, &task, png_allocate, png_release);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (info)
        decode(png, info, rgb, width, height);
    else if (task.status == UN_OK)
        task.status = UN_ERROR_MEMORY;
    if (png) png_destroy_read_struct(&png, &info, NULL);
    fclose(task.source);
    return task.status;
}
