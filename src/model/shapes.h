/* SPDX-License-Identifier: MIT
 *
 * shapes.h - what a cgroup's path says about who owns it.  Private to model/.
 */
#ifndef MODEL_SHAPES_H
#define MODEL_SHAPES_H
#include <stdbool.h>
#include <stddef.h>

enum { SHAPE_NAME = 128 };

/* The part of path that is the owner: of "/docker/ID/child" the first 8 + strlen(ID) bytes.  The
 * deepest container if there is one, else the deepest unit, else all of path.  ret_name gets the
 * container's name, "" for none. */
size_t shape_owner(const char *path, char ret_name[SHAPE_NAME]);
/* The root and init.scope: nobody's in particular. */
bool shape_is_system(const char *path);

#endif
