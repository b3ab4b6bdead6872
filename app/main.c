#include "undine.h"

#include <stdio.h>

int main(void)
{
    printf("undine %s\n", un_version());
    return 0;
}
