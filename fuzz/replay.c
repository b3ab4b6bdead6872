/* Gives every file of the named folders to a target: seeds and what was found before.
 *     replay FOLDER... */
#include <dirent.h>
#include <string.h>

#include "fuzz.h"

static int replay(const char *path)
{
    static uint8_t bytes[1 << 22];
    FILE *file = fopen(path, "rb");
    if (!file) return 0;
    size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    /* where reading beyond its end would be noticed */
    uint8_t *exact = malloc(count ? count : 1);
    FUZZ_REQUIRE(exact);
    memcpy(exact, bytes, count);
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(exact, count);
    free(exact);
    return 1;
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (!folder) continue; /* nothing was found there yet */
        for (struct dirent *entry; (entry = readdir(folder));) {
            char path[1024];
            snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            if (entry->d_name[0] != '.') count += replay(path);
        }
        closedir(folder);
    }
    printf("%d files\n", count);
    return count > 0 ? 0 : 1;
}
