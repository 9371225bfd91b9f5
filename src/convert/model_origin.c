/* Origins from paths.  Names become metadata of a file that travels, so that only what has the form of
 * a public id is taken for one. */
#include "convert/model_origin.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNNAMED "deepseek41"

/* One part of an id or a revision: letters, digits, '-', '_', '.', not starting with a dot. */
static bool is_plain_name(const char *text, size_t size) {
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
    return size > 0 && size < 256 && text[0] != '.' && strspn(text, allowed) >= size;
}

static bool set_id(plumb_model_origin *origin, const char *org, size_t org_size, const char *name) {
    if (!is_plain_name(org, org_size) || !is_plain_name(name, strlen(name))) return false;
    (void)snprintf(origin->name, sizeof origin->name, "%s", name);
    (void)snprintf(origin->url, sizeof origin->url, "https://huggingface.co/%.*s/%s", (int)org_size,
                   org, name);
    return true;
}

/* Cuts the last part off a path without a slash at its end; NULL when there is none. */
static char *cut_last(char *path) {
    char *slash = strrchr(path, '/');
    if (!slash) return NULL;
    *slash = '\0';
    return slash + 1;
}

static bool from_cache(char *path, plumb_model_origin *origin) {
    static const char prefix[] = "models--";
    const char *revision = cut_last(path);
    const char *snapshots = revision ? cut_last(path) : NULL;
    const char *repository = snapshots ? cut_last(path) : NULL;
    if (!repository || strcmp(snapshots, "snapshots") != 0 ||
        strncmp(repository, prefix, sizeof prefix - 1) != 0 ||
        !is_plain_name(revision, strlen(revision)))
        return false;
    const char *org = repository + sizeof prefix - 1, *between = strstr(org, "--");
    if (!between || !set_id(origin, org, (size_t)(between - org), between + 2)) return false;
    (void)snprintf(origin->revision, sizeof origin->revision, "%s", revision);
    return true;
}

static bool from_id(const char *id, plumb_model_origin *origin) {
    const char *slash = id ? strchr(id, '/') : NULL;
    return slash && set_id(origin, id, (size_t)(slash - id), slash + 1);
}

static void from_folder(const char *path, plumb_model_origin *origin) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t size = strlen(name);
    bool fits = size > 0 && size < sizeof origin->name && plumb__utf8_valid_prefix(name, size) == size;
    (void)snprintf(origin->name, sizeof origin->name, "%s", fits ? name : UNNAMED);
}

void plumb__model_origin(const char *folder, const char *name_or_path, plumb_model_origin *origin) {
    *origin = (plumb_model_origin){.name = UNNAMED};
    char *whole = realpath(folder, NULL), *parts = whole ? strdup(whole) : NULL;
    bool known = (parts && from_cache(parts, origin)) || from_id(name_or_path, origin);
    if (!known && whole) from_folder(whole, origin);
    free(parts);
    free(whole);
}
