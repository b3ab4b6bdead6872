#include "mesh.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    return fuzz_mesh(bytes, count, "off");
}
