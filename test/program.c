/* The program of a folder's tests: `test_mesh walls` runs test_walls.c and hands on what follows.
 * Without a name it lists them. TESTS is written by CMakeLists.txt. */
#include <stdio.h>
#include <string.h>

#define PLAIN(name) int test_main_##name(void);
#define WITH_ARGUMENTS(name) int test_main_##name(int argc, char **argv);
TESTS(PLAIN, WITH_ARGUMENTS)
#undef PLAIN
#undef WITH_ARGUMENTS

int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : "";
#define PLAIN(name)                                                                                \
    if (strcmp(wanted, #name) == 0) return test_main_##name();
#define WITH_ARGUMENTS(name)                                                                       \
    if (strcmp(wanted, #name) == 0) return test_main_##name(argc - 1, argv + 1);
    TESTS(PLAIN, WITH_ARGUMENTS)
#undef PLAIN
#undef WITH_ARGUMENTS
    fputs("which test?", stderr);
#define NAME(name) fputs(" " #name, stderr);
    TESTS(NAME, NAME)
    fputs("\n", stderr);
    return 2;
}
