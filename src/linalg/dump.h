/* Files of systems; only linalg/ includes this. */
#ifndef UN_LINALG_DUMP_H
#define UN_LINALG_DUMP_H

#include "linalg/linalg.h"

/* Makes the folder, and those above it, and checks that files can be created there. */
un_status un_system_folder(un_context *ctx, const char *folder);

#endif
